"""Attention of many branches over one shared prefix; knows nothing of models, caches or requests.

Cascade: all queries of a group read the prefix's keys and values once, where they lie, and each
branch reads its own suffix; the two partial softmaxes are merged exactly by their log-sum-exp:
with o1, l1 over the prefix and o2, l2 over the suffix, o = o1·σ(l1 − l2) + o2·σ(l2 − l1).
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.modeling_utils import AttentionInterface

from semif_bento.engine.layout import BranchLayout

CASCADE = "semif_cascade"
MAX_FLASH_HEAD_DIM = 256


@dataclass(frozen=True, slots=True)
class BranchContext:
    """What a forward over branches needs beside its tokens: the layout and the prefix by layer.

    `prefix_keys[i]` and `prefix_values[i]` are (1, H_kv, P, D) for a full-attention layer i.
    `keeps_states` asks recurrent layers to leave a single branch's last states in the cache.
    """

    layout: BranchLayout
    prefix_keys: dict[int, Tensor]
    prefix_values: dict[int, Tensor]
    keeps_states: bool = False


def cascade_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    branches: BranchContext | None = None,
    **kwargs: object,
) -> tuple[Tensor, None]:
    """Attend as transformers' attention interface asks; with `branches`, over prefix and suffix.

    Args:
        query: (1, H, T, D), T flat tokens of all branches; without `branches` one sequence.
        key, value: (1, H_kv, T, D), the suffixes' own keys and values.
        scaling: factor of the scores; D ** -0.5 when None.

    Returns:
        (1, T, H, D) in the dtype of `query`, and None for the weights.

    Raises:
        ValueError: a mask, or a continuation of a prefix without `branches`: both would be
            answered wrongly here, since the causal mask of torch's kernels starts top-left.
    """
    if attention_mask is not None or query.shape[2] != key.shape[2]:
        raise ValueError("cascade attention takes whole sequences or branches, without masks")
    if branches is None:
        return sdpa_attention_forward(module, query, key, value, None, scaling=scaling)
    layer = int(module.layer_idx)  # pyright: ignore[reportArgumentType]  an int, which torch types as a module
    scale = scaling if scaling is not None else query.shape[-1] ** -0.5
    prefix_key, prefix_value = branches.prefix_keys[layer], branches.prefix_values[layer]
    prefix_out, prefix_lse = _over_prefix(query, prefix_key, prefix_value, scale)
    suffix_out, suffix_lse = _over_suffixes(query, key, value, branches.layout, scale)
    weight = torch.sigmoid(prefix_lse - suffix_lse).unsqueeze(-1)  # (T, H, 1) float32
    merged = torch.lerp(suffix_out.float(), prefix_out.float(), weight)
    return merged.to(query.dtype).unsqueeze(0), None


def _over_prefix(q: Tensor, k: Tensor, v: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """Return output (T, H, D) and log-sum-exp (T, H) of every token over the whole prefix."""
    _, heads, tokens, dim = q.shape
    kv_heads = k.shape[1]
    group = heads // kv_heads
    # Queries that share a key head are more rows of one product: the keys are never repeated.
    folded = q.reshape(1, kv_heads, group * tokens, dim)
    out, lse = attend(folded, k, v, is_causal=False, scale=scale)
    return (
        out.reshape(heads, tokens, dim).transpose(0, 1),
        lse.reshape(heads, tokens).transpose(0, 1),
    )


def _over_suffixes(
    q: Tensor, k: Tensor, v: Tensor, layout: BranchLayout, scale: float
) -> tuple[Tensor, Tensor]:
    """Return output (T, H, D) and log-sum-exp (T, H) of every token over its branch so far."""
    group = q.shape[1] // k.shape[1]
    flat_q, flat_k, flat_v = (t[0].transpose(0, 1) for t in (q, k, v))  # (T, H, D)
    outs, lses = [], []
    for run in layout.runs:
        run_q, run_k, run_v = (run.pad(t).transpose(1, 2) for t in (flat_q, flat_k, flat_v))
        run_k, run_v = (t.repeat_interleave(group, dim=1) for t in (run_k, run_v))
        out, lse = attend(run_q, run_k, run_v, is_causal=True, scale=scale)  # (B, H, W, D)
        outs.append(run.unpad(out.transpose(1, 2)))
        lses.append(run.unpad(lse.transpose(1, 2)))
    return (outs[0], lses[0]) if len(outs) == 1 else (torch.cat(outs), torch.cat(lses))


def attend(
    q: Tensor, k: Tensor, v: Tensor, *, is_causal: bool, scale: float
) -> tuple[Tensor, Tensor]:
    """Return softmax(q·kᵀ·scale)·v and the log-sum-exp (natural log) of its scores.

    Args:
        q: (B, H, S, D); k, v: (B, H, L, D); with `is_causal`, S == L.

    Returns:
        Output (B, H, S, D) in the dtype of `q`, log-sum-exp (B, H, S) in float32.
    """
    if q.device.type == "cpu":
        out, lse = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
            q, k, v, 0.0, is_causal, scale=scale
        )
    elif q.dtype == torch.float32:
        out, lse, *_ = torch.ops.aten._scaled_dot_product_efficient_attention(
            q, k, v, None, True, 0.0, is_causal, scale=scale
        )
        lse = lse[..., : q.shape[2]]  # the kernel pads the query axis
    else:
        out, lse, *_ = torch.ops.aten._scaled_dot_product_flash_attention(
            q, k, v, 0.0, is_causal, False, scale=scale
        )
    return out, lse.float()


AttentionInterface.register(CASCADE, cascade_attention)
