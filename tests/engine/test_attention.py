"""Cascade attention is softmax attention over prefix and branch, in another order."""

import itertools
from types import SimpleNamespace

import pytest
import torch

from semif_bento.engine.attention import BranchContext, attend, cascade_attention
from semif_bento.engine.layout import BranchLayout

CPU = torch.device("cpu")
DIM = 16


def plain_attention(q, k, v, scale):
    """softmax(q·kᵀ·scale)·v in float64; q (H, S, D) is the end of k, v (H_kv, P + S, D)."""
    q, k, v = (t.double() for t in (q, k, v))
    k, v = (t.repeat_interleave(q.shape[0] // t.shape[0], dim=0) for t in (k, v))
    scores = q @ k.transpose(-1, -2) * scale
    steps, total = scores.shape[-2:]
    hidden = torch.ones(steps, total, dtype=torch.bool).triu(total - steps + 1)
    return scores.masked_fill(hidden, -torch.inf).softmax(-1) @ v


def _case(lengths, heads, kv_heads, prefix, *, sharpness=1.0):
    torch.manual_seed(len(lengths) * 1000 + prefix)
    tokens = sum(lengths)
    q = torch.randn(1, heads, tokens, DIM) * sharpness
    k, v = torch.randn(2, 1, kv_heads, tokens, DIM)
    prefix_k, prefix_v = torch.randn(2, 1, kv_heads, prefix, DIM)
    return q, k, v, prefix_k, prefix_v


@pytest.mark.parametrize("lengths", [[1], [5], [1, 1, 1], [1, 2, 40, 41, 70], [33] * 6])
@pytest.mark.parametrize(("heads", "kv_heads"), [(4, 4), (4, 2), (6, 1)])
@pytest.mark.parametrize("prefix", [1, 50])
@pytest.mark.parametrize("scaling", [None, 0.5])
def test_every_token_attends_to_the_prefix_and_its_own_branch(
    lengths, heads, kv_heads, prefix, scaling
):
    q, k, v, prefix_k, prefix_v = _case(lengths, heads, kv_heads, prefix)
    context = BranchContext(BranchLayout.of(lengths, prefix, CPU), {3: prefix_k}, {3: prefix_v})
    layer = SimpleNamespace(layer_idx=3)
    found, weights = cascade_attention(layer, q, k, v, None, scaling=scaling, branches=context)
    assert weights is None
    ends = list(itertools.accumulate(lengths))
    for start, end in zip([0, *ends[:-1]], ends, strict=True):
        expected = plain_attention(
            q[0, :, start:end],
            torch.cat([prefix_k[0], k[0, :, start:end]], dim=1),
            torch.cat([prefix_v[0], v[0, :, start:end]], dim=1),
            scaling or DIM**-0.5,
        )
        gap = found[0, start:end].transpose(0, 1).double() - expected
        assert gap.abs().max() < 1e-5


@pytest.mark.parametrize("sharpness", [1e-4, 60.0])
def test_flat_and_very_sharp_scores_merge_exactly_too(sharpness):
    q, k, v, prefix_k, prefix_v = _case([3, 9], 2, 2, 20, sharpness=sharpness)
    context = BranchContext(BranchLayout.of([3, 9], 20, CPU), {0: prefix_k}, {0: prefix_v})
    found, _ = cascade_attention(SimpleNamespace(layer_idx=0), q, k, v, None, branches=context)
    expected = plain_attention(
        q[0, :, 3:],
        torch.cat([prefix_k[0], k[0, :, 3:]], dim=1),
        torch.cat([prefix_v[0], v[0, :, 3:]], dim=1),
        DIM**-0.5,
    )
    assert torch.isfinite(found).all()
    assert (found[0, 3:].transpose(0, 1).double() - expected).abs().max() < 1e-4


def test_the_log_sum_exp_is_that_of_the_scores():
    q, k, v = torch.randn(3, 2, 4, 30, DIM)
    out, lse = attend(q, k, v, is_causal=False, scale=0.3)
    scores = q.double() @ k.double().transpose(-1, -2) * 0.3
    assert (out.double() - scores.softmax(-1) @ v.double()).abs().max() < 1e-5
    assert (lse.double() - scores.logsumexp(-1)).abs().max() < 1e-5
    assert lse.dtype == torch.float32


def test_a_whole_sequence_without_branches_is_causal_attention():
    q, k, v, _, _ = _case([12], 4, 2, 1)
    layer = SimpleNamespace(layer_idx=0, is_causal=True, num_key_value_groups=2)
    found, _ = cascade_attention(layer, q, k, v, None)
    expected = plain_attention(q[0], k[0], v[0], DIM**-0.5)
    assert (found[0].transpose(0, 1).double() - expected).abs().max() < 1e-5


def test_what_the_kernels_would_answer_wrongly_is_refused():
    q, k, v, prefix_k, prefix_v = _case([4], 2, 2, 6)
    layer = SimpleNamespace(layer_idx=0)
    with pytest.raises(ValueError, match="without masks"):
        cascade_attention(layer, q, k, v, torch.zeros(1, 1, 4, 4))
    longer = torch.cat([prefix_k, k], dim=2), torch.cat([prefix_v, v], dim=2)
    with pytest.raises(ValueError, match="whole sequences or branches"):
        cascade_attention(layer, q, *longer, None)
