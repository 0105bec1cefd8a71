"""How branches split into groups that fit a byte budget fixed at start.

Knows nothing of the memory that is free at a moment: the same request always splits the same way.
"""

from collections.abc import Sequence

import numpy as np

from semif_bento.engine.cost import CostModel
from semif_bento.errors import StartupError

MIB = 2**20
WIDEST_TO_NARROWEST = 1.25
"""Where groups are padded to their widest branch: the ratio of widths up to which one is joined."""


class BranchBudget:
    """A fixed number of bytes for a state and the branches that run on it at once."""

    def __init__(
        self,
        cost: CostModel,
        budget_bytes: int,
        max_tokens: int,
        max_branches: int | None = None,
    ) -> None:
        """Check that the budget holds every legal prompt.

        Args:
            cost: what a forward takes.
            budget_bytes: what a state and its branches may take.
            max_tokens: longest prompt.
            max_branches: most branches of a group, however small they are; None for no limit.

        Raises:
            StartupError: it does not; the message says how much it takes.
        """
        needed = cost.largest_bytes(max_tokens)
        if needed > budget_bytes:
            raise StartupError(
                f"A prompt of SEMIF_MAX_TOKENS={max_tokens} takes {needed / MIB:.0f} MiB, but the "
                f"budget for states and branches is {budget_bytes / MIB:.0f} MiB: lower "
                "SEMIF_MAX_TOKENS or raise SEMIF_VRAM_CAP_GIB or SEMIF_BRANCH_BUDGET_MIB."
            )
        self.cost = cost
        self.budget_bytes = budget_bytes
        self.max_branches = max_branches

    def groups(
        self, lengths: Sequence[int], prefix_tokens: int, held_bytes: int = 0
    ) -> list[list[int]]:
        """Split branches into groups that fit, shortest first.

        Args:
            lengths: each branch's suffix tokens, in request order.
            prefix_tokens: tokens of the state they share.
            held_bytes: what else of the call stays meanwhile, such as the state it was made from.

        Returns:
            Indices into `lengths`, each exactly once, ascending by length within and across
            groups. It depends on the arguments alone.
        """
        available = self.budget_bytes - self.cost.state_bytes(prefix_tokens) - held_bytes
        order = sorted(range(len(lengths)), key=lengths.__getitem__)
        groups: list[list[int]] = []
        start, ahead = 0, len(order)
        while start < len(order):
            sizes = [lengths[index] for index in order[start : start + ahead]]
            count = self._most(sizes, prefix_tokens, available)
            if count == ahead and start + ahead < len(order):
                ahead *= 2  # there may be more than were looked at
                continue
            groups.append(order[start : start + count])
            start, ahead = start + count, 2 * count  # to look at all each time is quadratic
        return groups

    def holds(self, length: int, prefix_tokens: int, held_bytes: int) -> bool:
        """Tell whether a branch of `length` tokens fits beside its state and what is held."""
        needed = self.cost.group_bytes([length], prefix_tokens)
        return needed + self.cost.state_bytes(prefix_tokens) + held_bytes <= self.budget_bytes

    def _most(self, lengths: Sequence[int], prefix_tokens: int, available: int) -> int:
        """Return how many of the first branches run together, 1 at least; lengths ascend."""
        fits = self.cost.growing_bytes(lengths, prefix_tokens) <= available
        if self.cost.is_padded:
            fits &= np.array(lengths) <= lengths[0] * WIDEST_TO_NARROWEST
        # The first that does not fit ends the group, even where one more would fit again.
        most = int(fits[1:].argmin()) + 1 if not fits[1:].all() else len(lengths)
        return most if self.max_branches is None else min(most, max(1, self.max_branches))
