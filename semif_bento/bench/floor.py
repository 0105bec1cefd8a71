"""The arithmetic floor of a scoring call on this machine; knows nothing of how it is scored."""

import time
from dataclasses import dataclass

import torch
from torch import nn
from transformers import PreTrainedModel

from semif_bento.engine.linear import has_native_products

SIDE = 1024
TRIES = 10


@dataclass(frozen=True, slots=True)
class Floor:
    """Least seconds for the products that a call cannot avoid.

    `parameters` are the weights every token passes in the backbone's linear layers;
    `attention_width` sums heads × head size over the full-attention layers. Recurrent mixing,
    norms, activations and the head are left out, so the floor is a little too low.
    """

    parameters: int
    attention_width: int
    flops_per_second: float

    @classmethod
    def of(cls, model: PreTrainedModel) -> "Floor":
        """Count a model's unavoidable work and time this machine's matrix products."""
        config = model.config.get_text_config()
        linears = [m for m in model.base_model.modules() if isinstance(m, nn.Linear)]
        kinds = (
            getattr(config, "layer_types", None) or ["full_attention"] * config.num_hidden_layers
        )
        head_dim = getattr(config, "head_dim", config.hidden_size // config.num_attention_heads)
        full = sum(kind == "full_attention" for kind in kinds)
        return cls(
            parameters=sum(m.weight.numel() for m in linears),
            attention_width=full * config.num_attention_heads * head_dim,
            flops_per_second=_product_rate(model),
        )

    def seconds(self, prefix_tokens: int, suffix_lengths: list[int], *, prefilled: bool) -> float:
        """Return the floor of scoring suffixes after a prefix, which may be prefilled already."""
        tokens = sum(suffix_lengths)
        pairs = sum(n * prefix_tokens + n * (n + 1) // 2 for n in suffix_lengths)
        if not prefilled:
            tokens += prefix_tokens
            pairs += prefix_tokens * (prefix_tokens + 1) // 2
        flops = 2 * self.parameters * tokens + 4 * self.attention_width * pairs
        return flops / self.flops_per_second


def _product_rate(model: PreTrainedModel) -> float:
    """Return floating-point operations a second of large matrix products, best of several."""
    parameter = next(model.parameters())
    device, dtype = parameter.device, parameter.dtype
    if not has_native_products(device, dtype):
        dtype = torch.float32
    side = torch.randn(SIDE, SIDE, device=device).to(dtype)
    best = float("inf")
    for _ in range(TRIES):
        started = time.perf_counter()
        torch.mm(side, side)
        if device.type == "cuda":
            torch.cuda.synchronize()
        best = min(best, time.perf_counter() - started)
    return 2 * SIDE**3 / best
