"""Load an NLI checkpoint whole and as it is served, or refuse; knows nothing of scoring."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import transformers
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerFast
from transformers.models.qwen3_5.modeling_qwen3_5 import Qwen3_5TextForSequenceClassification

from semif_bento.engine.loading import QWEN, load_whole
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
        return cast(nn.Linear, self.model.score)


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
        pad = tokenizer.pad_token_id
        text_config.pad_token_id = tokenizer.eos_token_id if pad is None else pad
    return NliCheckpoint(model, tokenizer, template)


def _load_model(directory: Path, config: Any, dtype: str, device: str) -> PreTrainedModel:
    loader: type[Any] = transformers.AutoModelForSequenceClassification
    if config.model_type in QWEN:
        text_config = config.get_text_config()
        text_config.id2label, text_config.label2id = config.id2label, config.label2id
        loader, config = Qwen3_5TextForSequenceClassification, text_config
    return load_whole(loader, directory, config, dtype, device, "The NLI model")
