"""Read the answer letters off a hidden state; knows nothing of prompts, caches or branches."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from semif_bento.engine.finite import finite
from semif_bento.errors import ScoringFailed, StartupError

VOCABULARY_CHUNK = 16384
"""Rows of the head multiplied at once for the full-vocabulary sum; bounds its memory."""


class SlotHead:
    """The rows of a language-model head that belong to the answer slots.

    The product runs in the model's dtype and is widened to float32 afterwards, as the whole head's
    would be; the whole head is touched only for `letter_mass`.

    Args:
        head: the model's own.
        slot_ids: tokens of the 16 letters.
        wide_ids: tokens of the N slots of wide prompts; none where there are no such prompts.

    Raises:
        StartupError: the head is not one plain linear layer.
    """

    def __init__(
        self, head: nn.Module | None, slot_ids: Sequence[int], wide_ids: Sequence[int] = ()
    ) -> None:
        if not isinstance(head, nn.Linear):
            raise StartupError("The model has no plain linear head to read the slots from.")
        self._head = head
        self.slot_ids, self.wide_ids = tuple(slot_ids), tuple(wide_ids)
        self._weight, self._bias = _rows(head, slot_ids)  # (16, hidden)
        # Apart, so that no wide row changes the bits of the others.
        self._wide_weight, self._wide_bias = _rows(head, wide_ids)  # (N, hidden)

    def logits(self, hidden: Tensor) -> Tensor:
        """Return the slots' logits.

        Args:
            hidden: last hidden states (B, hidden) in the model's dtype.

        Returns:
            (B, 16) float32 on the CPU, columns in letter order.

        Raises:
            ScoringFailed: a logit is NaN or infinite.
        """
        return finite(nn.functional.linear(hidden, self._weight, self._bias))

    def wide_logits(self, hidden: Tensor) -> Tensor:
        """Return the logits of the slots of wide prompts, (B, N) float32 on the CPU.

        Raises:
            ScoringFailed: a logit is NaN or infinite.
        """
        return finite(nn.functional.linear(hidden, self._wide_weight, self._wide_bias))

    def declared(self, hidden: Tensor, counts: Sequence[int]) -> list[Tensor]:
        """Return each row's logits of its own letters.

        Args:
            hidden: last hidden states (B, hidden) in the model's dtype.
            counts: declared letters of each row; more than 16 make the row a wide one.

        Returns:
            B tensors (count,) float32 on the CPU.

        Raises:
            ScoringFailed: a logit is NaN or infinite.
        """
        rows = list(self.logits(hidden))
        wide = [row for row, count in enumerate(counts) if count > len(self.slot_ids)]
        if wide:
            for row, logits in zip(wide, self.wide_logits(hidden[wide]), strict=True):
                rows[row] = logits
        return [logits[:count] for logits, count in zip(rows, counts, strict=True)]

    def letter_mass(
        self, hidden: Tensor, slots: Tensor | Sequence[Tensor], counts: Sequence[int]
    ) -> list[float]:
        """Return the probability (0..1) of each row's declared letters within the vocabulary.

        Args:
            hidden: last hidden states (B, hidden) in the model's dtype.
            slots: what `logits` or `declared` returned for them.
            counts: declared letters of each row.

        Raises:
            ScoringFailed: the sum over the vocabulary is not finite.
        """
        total = self._vocabulary_logsumexp(hidden).cpu()  # (B,)
        if not bool(torch.isfinite(total).all()):
            raise ScoringFailed("The model gave a logit that is not a finite number.")
        declared = [row[:count].logsumexp(0) for row, count in zip(slots, counts, strict=True)]
        return [min(1.0, float((d - t).exp())) for d, t in zip(declared, total, strict=True)]

    def _vocabulary_logsumexp(self, hidden: Tensor) -> Tensor:
        parts = []
        for start in range(0, self._head.out_features, VOCABULARY_CHUNK):
            chunk = slice(start, start + VOCABULARY_CHUNK)
            bias = None if self._head.bias is None else self._head.bias[chunk]
            logits = nn.functional.linear(hidden, self._head.weight[chunk], bias)
            parts.append(logits.float().logsumexp(-1))
        return torch.stack(parts, dim=-1).logsumexp(-1)


def _rows(head: nn.Linear, ids: Sequence[int]) -> tuple[Tensor, Tensor | None]:
    rows = torch.tensor(list(ids), dtype=torch.long, device=head.weight.device)
    return head.weight.detach()[rows], None if head.bias is None else head.bias.detach()[rows]
