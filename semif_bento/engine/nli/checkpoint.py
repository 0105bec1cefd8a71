"""Load an NLI checkpoint whole and as it is served, or refuse; knows nothing of scoring."""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors import SafetensorError
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerFast
from transformers.models.qwen3_5.modeling_qwen3_5 import Qwen3_5TextForSequenceClassification

from semif_bento.engine.checkpoint import refuse_partial
from semif_bento.engine.loading import first_line, refuse_misplaced
from semif_bento.engine.nli.template import read_configuration
from semif_bento.engine.vocabulary import load_tokenizer
from semif_bento.errors import StartupError


@dataclass(frozen=True, slots=True)
class NliCheckpoint:
    """A whole checkpoint in evaluation mode, its tokenizer, and the template it was trained on."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerFast
    template: str

    @property
    def head(self) -> nn.Linear:
        """The classification head, hidden → 3."""
        return self.model.score  # pyright: ignore[reportReturnType]


def load_checkpoint(directory: Path, dtype: str, device: str) -> NliCheckpoint:
    """Load a sequence classification checkpoint with the three labels of NLI.

    Of a multimodal Qwen3.5 checkpoint the text part is loaded.

    Args:
        directory: a local directory with a config, a tokenizer and safetensors.
        dtype: "bfloat16", "float16" or "float32".
        device: "cpu" or "cuda".

    Raises:
        StartupError: missing or unreadable files, other labels or another order of them, no
            template, another head than one linear layer, weights that are missing (the head's
            above all), mismatched or unknown to the architecture, or on another device.
    """
    config, template = read_configuration(directory)
    tokenizer = load_tokenizer(directory, needs_chat_template=False)
    model = _load_model(directory, config, dtype, device)
    if not isinstance(getattr(model, "score", None), nn.Linear):
        raise StartupError("The NLI model's head is not one linear layer named score.")
    text_config = model.config.get_text_config()
    if text_config.pad_token_id is None:
        # Where pooling looks for the last real token; without one, padded batches are refused.
        text_config.pad_token_id = tokenizer.pad_token_id or tokenizer.eos_token_id
    refuse_misplaced(model, device)
    return NliCheckpoint(model, tokenizer, template)


def _load_model(directory: Path, config: Any, dtype: str, device: str) -> PreTrainedModel:
    loader: type[Any] = transformers.AutoModelForSequenceClassification
    if config.model_type in ("qwen3_5", "qwen3_5_text"):
        text_config = config.get_text_config()
        text_config.id2label, text_config.label2id = config.id2label, config.label2id
        loader, config = Qwen3_5TextForSequenceClassification, text_config
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what matters in them is checked in `info` below
            model, info = loader.from_pretrained(
                directory,
                config=config,
                dtype=getattr(torch, dtype),
                output_loading_info=True,
                use_safetensors=True,
                local_files_only=True,
                trust_remote_code=False,
            )
    except (OSError, ValueError, KeyError, RuntimeError, ImportError, SafetensorError) as exc:
        raise StartupError(f"The NLI model cannot be loaded: {first_line(exc)}") from exc
    refuse_partial(info)
    return model.to(device).eval()
