"""A scorer that can be asked thousands of times; knows nothing of what is asked."""

import functools

import torch

from models.loaded import LoadedModel, build_tiny_qwen
from models.qwen_vocabulary import load_qwen_tokenizer
from models.scorers import assemble
from semif_bento.engine.letters.scorer import TorchScorer

SLOW_DECAY = -5.0
"""Log of the decay's rate. As initialized, a state is forgotten within a suffix, and logits would
not tell a lost one (1e-3) from a right one; so, a thousandth of the state moves them by 5e-4."""


@functools.cache
def load_small_scorer() -> TorchScorer:
    """A hybrid model of two layers with the real vocabulary, in float32, for 4,096 tokens.

    Shared by all tests. They may empty its prefix cache and give it another guard or budget, and
    must rely on none of the three.
    """
    shape = {"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 2}
    model = build_tiny_qwen(**shape, layer_types=["linear_attention", "full_attention"])
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("A_log"):
                parameter.fill_(SLOW_DECAY)
    return assemble(LoadedModel(model, load_qwen_tokenizer(), "float32"), max_tokens=4096)
