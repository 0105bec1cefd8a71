"""Read the answer letters off a hidden state; knows nothing of prompts, caches or branches."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from semif_bento.errors import ScoringFailed, StartupError

VOCABULARY_CHUNK = 16384
"""Rows of the head multiplied at once for the full-vocabulary sum; bounds its memory."""


class SlotHead:
    """The rows of a language-model head that belong to the answer slots.

    The product runs in the model's dtype and is widened to float32 afterwards, as the whole head's
    would be; the whole head is touched only for `letter_mass`.
    """

    def __init__(self, head: nn.Module | None, slot_ids: Sequence[int]) -> None:
        if not isinstance(head, nn.Linear):
            raise StartupError("The model has no plain linear head to read the slots from.")
        self._head = head
        rows = torch.tensor(list(slot_ids), device=head.weight.device)
        self._weight = head.weight.detach()[rows]  # (16, hidden)
        self._bias = None if head.bias is None else head.bias.detach()[rows]

    def logits(self, hidden: Tensor) -> Tensor:
        """Return the slots' logits.

        Args:
            hidden: last hidden states (B, hidden) in the model's dtype.

        Returns:
            (B, 16) float32 on the CPU, columns in letter order.

        Raises:
            ScoringFailed: a logit is NaN or infinite.
        """
        slots = nn.functional.linear(hidden, self._weight, self._bias).float().cpu()
        if not bool(torch.isfinite(slots).all()):
            raise ScoringFailed("The model gave a logit that is not a finite number.")
        return slots

    def letter_mass(self, hidden: Tensor, slots: Tensor, counts: Sequence[int]) -> list[float]:
        """Return the probability (0..1) of each row's declared letters within the vocabulary.

        Args:
            hidden: last hidden states (B, hidden) in the model's dtype.
            slots: what `logits` returned for them, (B, 16).
            counts: declared letters of each row, 2 to 16.

        Raises:
            ScoringFailed: the sum over the vocabulary is not finite.
        """
        total = self._vocabulary_logsumexp(hidden).cpu()  # (B,)
        if not bool(torch.isfinite(total).all()):
            raise ScoringFailed("The model gave a logit that is not a finite number.")
        declared = [slots[row, :count].logsumexp(0) for row, count in enumerate(counts)]
        return [min(1.0, float((d - t).exp())) for d, t in zip(declared, total, strict=True)]

    def _vocabulary_logsumexp(self, hidden: Tensor) -> Tensor:
        parts = []
        for start in range(0, self._head.out_features, VOCABULARY_CHUNK):
            chunk = slice(start, start + VOCABULARY_CHUNK)
            bias = None if self._head.bias is None else self._head.bias[chunk]
            logits = nn.functional.linear(hidden, self._head.weight[chunk], bias)
            parts.append(logits.float().logsumexp(-1))
        return torch.stack(parts, dim=-1).logsumexp(-1)
