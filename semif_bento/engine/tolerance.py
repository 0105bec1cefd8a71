"""How far two right computations of hidden states may lie apart; knows nothing of their use."""

from torch import Tensor

from semif_bento.engine.backbone import Backbone

HIDDEN_TOLERANCE = {"bfloat16": 0.1, "float16": 0.02, "float32": 1e-3}
"""Largest relative distance of last hidden states between two right ways to compute them, by
dtype. Right ones were measured at up to 0.017 in bfloat16 and 7e-6 in float32; a cache that loses
its recurrent state at 0.4 and more, its convolution at 1.3, right behind the prefix."""


def allowed_distance(backbone: Backbone) -> float:
    """Return the largest relative distance that the dtype of a backbone explains."""
    return HIDDEN_TOLERANCE[str(backbone.dtype).removeprefix("torch.")]


def relative_distance(found: Tensor, expected: Tensor) -> float:
    """Return the largest ‖found − expected‖ / ‖expected‖ over rows, in float32; NaN if any is."""
    gap = (found.float() - expected.float()).norm(dim=-1)
    return float((gap / expected.float().norm(dim=-1)).max())
