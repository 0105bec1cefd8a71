"""NLI checkpoints to test with: tiny, random, with the real vocabulary; as openjev publishes them.

Knows nothing of classifiers.
"""

import functools
import json
import tempfile
from pathlib import Path

import torch
from transformers import (
    PreTrainedTokenizerFast,
    Qwen3_5Config,
    Qwen3_5ForSequenceClassification,
)

from models.loaded import TINY_SHAPE
from models.qwen_vocabulary import load_qwen_tokenizer
from models.scorers import settings_for
from semif_bento.engine.nli.checkpoint import NliCheckpoint
from semif_bento.engine.nli.classifier import TorchClassifier
from semif_bento.engine.startup import open_classifier

TEMPLATE = "Premise: {premise}\nHypothesis: {hypothesis}"
SLOW_DECAY = -5.0
"""Log of the decay's rate: slow, so that a lost recurrent state shows behind a suffix."""


def build_nli_model(seed: int = 0, **changes: object) -> Qwen3_5ForSequenceClassification:
    """Build a random checkpoint in float32 with a vision tower; `changes` go to its text part."""
    vision = {"depth": 1, "hidden_size": 32, "intermediate_size": 32, "num_heads": 2}
    vision |= {"out_hidden_size": 128, "num_position_embeddings": 16}
    labels = ("contradiction", "entailment", "neutral")
    config = Qwen3_5Config(
        text_config=TINY_SHAPE | changes,
        vision_config=vision,
        id2label=dict(enumerate(labels)),
        label2id={label: index for index, label in enumerate(labels)},
        nli_template=TEMPLATE,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = Qwen3_5ForSequenceClassification(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("A_log"):
                parameter.fill_(SLOW_DECAY)
        model.score.weight.mul_(3)  # or every answer would be close to a third each
    return model


def save_nli_model(
    directory: Path,
    dtype: str = "float32",
    tokenizer: PreTrainedTokenizerFast | None = None,
    **changes: object,
) -> Path:
    """Write a checkpoint and a tokenizer, by default Qwen3.5's; return the directory."""
    build_nli_model(**changes).to(getattr(torch, dtype)).save_pretrained(directory)
    (tokenizer or load_qwen_tokenizer()).save_pretrained(directory)
    return directory


def change_config(directory: Path, **changes: object) -> None:
    """Overwrite keys of a saved checkpoint's config.json; None removes one."""
    path = directory / "config.json"
    config = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({key: value for key, value in config.items() if value is not None}))


@functools.cache
def shared_nli_model() -> Path:
    """Return a saved checkpoint that all tests of this process share; never change it."""
    return save_nli_model(Path(tempfile.mkdtemp(prefix="semif-nli-")))


def open_nli(directory: Path, dtype: str = "float32", **changes: object) -> TorchClassifier:
    """Open a classifier of its own; `changes` are fields of `Settings`."""
    return open_with_checkpoint(directory, dtype, **changes)[0]


def open_with_checkpoint(
    directory: Path, dtype: str = "float32", **changes: object
) -> tuple[TorchClassifier, NliCheckpoint]:
    """Open a classifier of its own and keep the untouched checkpoint beside it."""
    nli: dict[str, object] = {
        "model": "none",
        "revision": None,
        "nli_model": str(directory),
        "nli_revision": "test",
        "nli_dtype": dtype,
        "max_tokens": 4096,
    }
    return open_classifier(settings_for(dtype, **(nli | changes)))


@functools.cache
def shared_classifier(dtype: str = "float32") -> tuple[TorchClassifier, NliCheckpoint]:
    """Return a classifier that all tests of this process share.

    They may empty its prefix cache and turn sharing off and on, and must rely on neither.
    """
    return open_with_checkpoint(shared_nli_model(), dtype)
