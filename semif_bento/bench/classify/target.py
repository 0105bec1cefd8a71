"""The checkpoint that is measured: the configured one, or a tiny random one made for the occasion.

Knows nothing of pairs or timing.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from transformers import Qwen3_5TextConfig
from transformers.models.qwen3_5.modeling_qwen3_5 import Qwen3_5TextForSequenceClassification

from semif_bento.bench.target import SMOLLM2
from semif_bento.decisions import ModelIdentity
from semif_bento.engine.device import prepare_device
from semif_bento.engine.loading import model_directory
from semif_bento.engine.nli.checkpoint import NliCheckpoint
from semif_bento.engine.nli.classifier import TorchClassifier
from semif_bento.engine.nli.encoding import PairEncoder
from semif_bento.engine.nli.opening import assemble_classifier, load_nli
from semif_bento.engine.sources import locate
from semif_bento.engine.vocabulary import load_tokenizer
from semif_bento.entailment import LABELS, PAIR_TEMPLATE
from semif_bento.errors import OutOfMemory, StartupError
from semif_bento.settings import Settings

TINY_NAME, TINY_REVISION = "tiny-nli", "random weights, seed 0"
SLOW_DECAY = -5.0
"""Log of the decay's rate: slow, so that a premise still counts at the end of a hypothesis."""
HEAD_SCALE = 3.0
"""Or every answer would be close to a third each."""


@dataclass(frozen=True, slots=True)
class Target:
    """An untouched checkpoint for the reference, our classifier around it, and its encoder."""

    checkpoint: NliCheckpoint
    classifier: TorchClassifier
    encoder: PairEncoder

    @property
    def identity(self) -> ModelIdentity:
        """What answers: source, revision, dtype and versions."""
        return self.classifier.identity


def open_target(settings: Settings, *, is_tiny: bool = False) -> Target:
    """Load the configured checkpoint and put our classifier around it.

    Args:
        settings: its `nli_*` fields name the checkpoint; the letter engine is left out.
        is_tiny: whether that is the one of `write_tiny_checkpoint`, which is called by its own
            name wherever it was written.

    Raises:
        StartupError: as `open_backend` raises it.
    """
    prepare_device(settings)
    try:
        checkpoint, source = load_nli(settings)
        if is_tiny:
            source = replace(source, name=TINY_NAME, revision=TINY_REVISION)
        classifier = assemble_classifier(checkpoint, source, settings)
    except (torch.OutOfMemoryError, OutOfMemory) as exc:
        raise StartupError("The NLI model does not fit on the device under its cap.") from exc
    vocabulary = int(checkpoint.model.config.get_text_config().vocab_size)
    encoder = PairEncoder(
        checkpoint.tokenizer, checkpoint.template, settings.max_tokens, vocabulary
    )
    return Target(checkpoint, classifier, encoder)


def card_id(settings: Settings) -> str:
    """Return the id by which nvidia-smi knows the card that this process uses.

    Raises:
        StartupError: the device cannot be used.
    """
    prepare_device(settings)
    return f"GPU-{torch.cuda.get_device_properties(0).uuid}"


def write_tiny_checkpoint(directory: Path, cache_dir: Path) -> Path:
    """Write a random Qwen3.5 of four layers with SmolLM2's vocabulary; return its directory.

    It is large enough that a token costs more than a call, and knows nothing: its answers agree
    with a reference or not, and are never right.

    Raises:
        StartupError: the package with the vocabulary is not installed.
    """
    tokenizer = load_tokenizer(model_directory(locate(SMOLLM2, None), "bfloat16", cache_dir))
    config = Qwen3_5TextConfig(**_shape(len(tokenizer)))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = Qwen3_5TextForSequenceClassification(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("A_log"):
                parameter.fill_(SLOW_DECAY)
        model.score.weight.mul_(HEAD_SCALE)
    model.save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    return directory


def _shape(vocabulary: int) -> dict[str, Any]:
    return {
        "vocab_size": vocabulary,
        "hidden_size": 256,
        "intermediate_size": 768,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 64,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 4,
        "linear_key_head_dim": 32,
        "linear_value_head_dim": 32,
        "initializer_range": 0.1,
        "id2label": dict(enumerate(LABELS)),
        "label2id": {label: index for index, label in enumerate(LABELS)},
        "nli_template": PAIR_TEMPLATE,
    }
