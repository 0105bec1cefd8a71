"""Numbers that leave the device must be finite; knows nothing of what they mean."""

import torch
from torch import Tensor

from semif_bento.errors import ScoringFailed


def finite(logits: Tensor) -> Tensor:
    """Return logits in float32 on the CPU.

    Raises:
        ScoringFailed: one is NaN or infinite.
    """
    logits = logits.float().cpu()
    if not bool(torch.isfinite(logits).all()):
        raise ScoringFailed("The model gave a logit that is not a finite number.")
    return logits
