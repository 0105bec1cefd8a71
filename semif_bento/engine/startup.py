"""Open the engines that the settings ask for, or refuse to start; knows nothing of HTTP."""

import contextlib
import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import cast

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from semif_bento.backend import Backend
from semif_bento.decisions import Engine
from semif_bento.engine.device import prepare_device
from semif_bento.engine.kind import EngineKind
from semif_bento.engine.letters import opening as letters
from semif_bento.engine.letters.scorer import TorchScorer
from semif_bento.engine.nli import opening as nli
from semif_bento.engine.nli.checkpoint import NliCheckpoint
from semif_bento.engine.nli.classifier import TorchClassifier
from semif_bento.engine.opening import EngineModule, Opening
from semif_bento.engine.registry import wanted_kinds
from semif_bento.errors import EngineUnfit, OutOfMemory, StartupError
from semif_bento.settings import Settings

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OpenedModel:
    """A scorer, with the untouched model and the tokenizer that it was built around."""

    scorer: TorchScorer
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerFast


def open_backend(settings: Settings, kinds: Iterable[EngineKind] | None = None) -> Backend:
    """Load, prove and warm up engines.

    It must be called on the thread that will score.

    Args:
        settings: limits, budgets, and where weights come from.
        kinds: engines to open; by default all that the settings ask for.

    Raises:
        StartupError: anything of INV-3: the device, the files, the weights, the slots, or a proof.
    """
    kinds = list(wanted_kinds(settings) if kinds is None else kinds)
    prepare_device(settings)
    opening = Opening(settings)
    modules = {kind.name: cast("EngineModule", import_module(kind.torch_module)) for kind in kinds}
    with _refusing_what_does_not_fit():
        for module in modules.values():
            module.load_weights(opening)
        engines = _open_engines(modules, opening)
    default = settings.default_engine
    return Backend(engines, default if default in engines else None)


def _open_engines(modules: Mapping[str, EngineModule], opening: Opening) -> dict[str, Engine]:
    """Open every engine that the models can carry; the default one must be among them."""
    engines = {}
    for name, module in modules.items():
        try:
            engines[name] = module.open_engine(opening)
        except EngineUnfit as unfit:
            if name == opening.settings.default_engine or len(modules) == 1:
                raise
            logger.warning("the engine %s is left out: %s", name, unfit)
    return engines


def open_model(settings: Settings) -> OpenedModel:
    """Open the letter engine alone, and keep the untouched model beside the scorer.

    Raises:
        StartupError: as `open_backend` raises it.
    """
    prepare_device(settings)
    opening = Opening(settings)
    with _refusing_what_does_not_fit():
        loaded = letters.load_weights(opening)
        return OpenedModel(letters.open_engine(opening), loaded.model, loaded.tokenizer)


def open_scorer(settings: Settings) -> TorchScorer:
    """Open the letter engine alone.

    Raises:
        StartupError: as `open_backend` raises it.
    """
    return open_model(settings).scorer


def open_classifier(settings: Settings) -> tuple[TorchClassifier, NliCheckpoint]:
    """Open the NLI engine's classifier alone, and keep the untouched checkpoint beside it.

    Raises:
        StartupError: as `open_backend` raises it.
    """
    prepare_device(settings)
    with _refusing_what_does_not_fit():
        checkpoint, source = nli.load_nli(settings)
        return nli.assemble_classifier(checkpoint, source, settings), checkpoint


@contextlib.contextmanager
def _refusing_what_does_not_fit() -> Iterator[None]:
    try:
        yield
    except (torch.OutOfMemoryError, OutOfMemory) as exc:
        raise StartupError("The models do not fit on the device under its cap.") from exc
