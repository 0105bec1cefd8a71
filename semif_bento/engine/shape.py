"""What the cost of a group of branches depends on, as the group grows; knows nothing of bytes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from semif_bento.engine.layout import padded_width

RECURRENT_CHUNK = 64
"""The gated delta rule pads a branch to whole chunks of this many tokens."""

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class GroupShapes:
    """The shapes of a group of its first branch, of its first two, and so on; each (B,) int64.

    `tokens` counts what passes the layers, padding included where a group is padded. The next two
    tell of what is mixed at once (the whole group where it is padded, else its heaviest run):
    `mixed_tokens` in whole recurrent chunks, and `mixed_branches`. The last three are 0 where
    prefixes are read in place: `joined_tokens`, prefix and suffix of every branch;
    `masked_pairs`, suffix token × joined token of every branch; `mask_bytes`, one mask for all.
    """

    tokens: Counts
    mixed_tokens: Counts
    mixed_branches: Counts
    joined_tokens: Counts
    masked_pairs: Counts
    mask_bytes: Counts

    @classmethod
    def of(cls, lengths: Sequence[int], prefix_tokens: int, *, is_padded: bool) -> "GroupShapes":
        """Return the shapes of a growing group of branches with these suffix lengths, ascending."""
        widths = np.array(lengths, dtype=np.int64)
        counts = np.arange(1, len(lengths) + 1)
        if is_padded:
            joined = prefix_tokens + widths
            return cls(
                tokens=counts * widths,
                mixed_tokens=counts * _whole_chunks(widths),
                mixed_branches=counts,
                joined_tokens=counts * joined,
                masked_pairs=counts * widths * joined,
                mask_bytes=widths * joined,
            )
        none = np.zeros_like(counts)
        return cls(widths.cumsum(), *_heaviest_runs(widths, counts), none, none, none)


def _heaviest_runs(widths: Counts, counts: Counts) -> tuple[Counts, Counts]:
    """Return the tokens and branches of the heaviest run so far; of equal ones the fullest."""
    classes = padded_width(widths)
    is_first = np.diff(classes, prepend=-1) != 0
    in_run = counts - np.maximum.accumulate(np.where(is_first, counts - 1, 0))
    # Both in one number, so that one running maximum keeps them together.
    step = len(counts) + 1
    tokens, branches = np.divmod(
        np.maximum.accumulate(_whole_chunks(classes) * in_run * step + in_run), step
    )
    return tokens, branches


def _whole_chunks(tokens: Counts) -> Counts:
    return -(-tokens // RECURRENT_CHUNK) * RECURRENT_CHUNK
