"""Scorers around test models, with small budgets unless told otherwise."""

from pathlib import Path

from models.loaded import LoadedModel
from semif_bento.engine.letters.opening import assemble_scorer
from semif_bento.engine.letters.scorer import TorchScorer
from semif_bento.engine.sources import ModelSource
from semif_bento.settings import Settings


def settings_for(dtype: str, **changes: object) -> Settings:
    """Settings of a CPU server with small limits; `changes` are fields of `Settings`."""
    small: dict[str, object] = {
        "api_token": "t" * 40,
        "model": "test-model",
        "revision": "test",
        "device": "cpu",
        "dtype": dtype,
        "max_tokens": 2048,
        "branch_budget_mib": 256,
        "prefix_cache_mib": 16,
    }
    return Settings(**(small | changes))


def assemble(loaded: LoadedModel, **changes: object) -> TorchScorer:
    """Build and prove a scorer around a loaded model; `changes` are fields of `Settings`."""
    settings = settings_for(loaded.dtype, **changes)
    source = ModelSource("directory", settings.model, str(settings.revision), Path())
    return assemble_scorer(loaded.model, loaded.tokenizer, source, settings)
