"""How branches split into groups that fit a byte budget fixed at start.

Knows nothing of the memory that is free at a moment: the same request always splits the same way.
The cost of a forward is linear in its tokens, its padded tokens and its branches; the factors are
measured once at start on the loaded model.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from semif_bento.engine.backbone import Backbone
from semif_bento.engine.layout import padded_width
from semif_bento.engine.meter import PeakMeter
from semif_bento.engine.prefix import KeyValues, PrefixState
from semif_bento.errors import StartupError

MIB = 2**20
RECURRENT_CHUNK = 64
"""The gated delta rule pads a branch to whole chunks of this many tokens."""
PROBE_PREFIX_TOKENS = 64
PROBE_GROUPS = ([64], [256], [64] * 4, [65] * 4, [20, 40, 70, 100, 130])
"""Suffix lengths of the groups that the cost is measured on."""
WIDEST_TO_NARROWEST = 1.25
"""Where groups are padded to their widest branch: the ratio of widths up to which one is joined."""


LAYERS, MIXING = "layers", "mixing"


@dataclass(frozen=True, slots=True)
class GroupShape:
    """What the cost of a group of branches depends on.

    `tokens` counts what passes the layers, padding included where a group is padded. The other
    figures tell of what is mixed at once (the whole group where it is padded, else its heaviest
    run): `mixed_branches`, `mixed_tokens` in whole recurrent chunks, and the `width`.
    """

    tokens: int
    mixed_tokens: int
    mixed_branches: int
    width: int

    @classmethod
    def of(cls, lengths: Sequence[int], *, is_padded: bool) -> "GroupShape":
        """Return the shape of a group of branches with these suffix lengths."""
        width = max(lengths)
        if is_padded:
            count = len(lengths)
            return cls(count * width, count * _whole_chunks(width), count, width)
        runs = Counter(padded_width(length) for length in lengths)
        mixed, branches = max((_whole_chunks(w) * count, count) for w, count in runs.items())
        return cls(sum(lengths), mixed, branches, width)


@dataclass(frozen=True, slots=True)
class PhaseCost:
    """Bytes of one phase of a forward: fixed + by token + by mixed token + by mixed branch."""

    fixed_bytes: float = 0.0
    token_bytes: float = 0.0
    mixed_token_bytes: float = 0.0
    mixed_branch_bytes: float = 0.0

    def of(self, shape: GroupShape) -> float:
        """Return the bytes this phase takes for a group."""
        return (
            self.fixed_bytes
            + shape.tokens * self.token_bytes
            + shape.mixed_tokens * self.mixed_token_bytes
            + shape.mixed_branches * self.mixed_branch_bytes
        )


@dataclass(frozen=True, slots=True)
class CostModel:
    """Bytes of a forward: what its most expensive phase takes.

    Phases are the layers at large, the recurrent mixing (zero for a model without), and the
    joining of prefix and suffix, which takes `joined_token_bytes` a branch and token in one
    attention layer where groups are padded, and nothing where prefixes are read in place.
    `state_fixed_bytes + state_token_bytes × P` is what a prefilled state of P tokens holds.
    """

    layers: PhaseCost
    mixing: PhaseCost
    joined_token_bytes: int
    state_fixed_bytes: int
    state_token_bytes: int

    @property
    def is_padded(self) -> bool:
        """Tell whether groups are padded to their widest branch."""
        return self.joined_token_bytes > 0

    def group_bytes(self, lengths: Sequence[int], prefix_tokens: int) -> int:
        """Return the bytes that running branches of these lengths takes beside their state."""
        shape = GroupShape.of(lengths, is_padded=self.is_padded)
        joined = len(lengths) * (prefix_tokens + shape.width) * self.joined_token_bytes
        return int(
            max(self.layers.of(shape), self.mixing.of(shape), self.layers.fixed_bytes + joined)
        )

    def state_bytes(self, prefix_tokens: int) -> int:
        """Return the bytes a prefilled state holds."""
        return self.state_fixed_bytes + self.state_token_bytes * prefix_tokens

    def largest_bytes(self, max_tokens: int) -> int:
        """Return what the most demanding legal prompt takes when its branch runs alone."""
        return self.group_bytes([max_tokens], 0) + self.state_bytes(max_tokens)


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

    def groups(self, lengths: Sequence[int], prefix_tokens: int) -> list[list[int]]:
        """Split branches into groups that fit, shortest first.

        Args:
            lengths: each branch's suffix tokens, in request order.
            prefix_tokens: tokens of the state they share.

        Returns:
            Indices into `lengths`, each exactly once, ascending by length within and across
            groups. It depends on the arguments alone.
        """
        available = self.budget_bytes - self.cost.state_bytes(prefix_tokens)
        groups: list[list[int]] = []
        for index in sorted(range(len(lengths)), key=lambda index: lengths[index]):
            grown = [*(groups[-1] if groups else []), index]
            if groups and self._fits([lengths[i] for i in grown], prefix_tokens, available):
                groups[-1] = grown
            else:
                groups.append([index])
        return groups

    def _fits(self, lengths: Sequence[int], prefix_tokens: int, available: int) -> bool:
        if self.max_branches is not None and len(lengths) > self.max_branches:
            return False
        if self.cost.is_padded and lengths[-1] > lengths[0] * WIDEST_TO_NARROWEST:
            return False
        return self.cost.group_bytes(lengths, prefix_tokens) <= available


def measure_cost(backbone: Backbone) -> CostModel:
    """Measure the factors of a model's cost by following a few small forwards."""
    token = 0
    prefix = backbone.prefill([token] * PROBE_PREFIX_TOKENS)
    joined = _joined_token_bytes(backbone, prefix)
    shapes = [GroupShape.of(lengths, is_padded=joined > 0) for lengths in PROBE_GROUPS]
    meters = [_follow(backbone, prefix, [[token] * n for n in group]) for group in PROBE_GROUPS]
    mixing = [meter.phase_peaks.get(MIXING, 0) for meter in meters]
    state_token_bytes = _state_token_bytes(prefix)
    return CostModel(
        layers=_fit(shapes, [meter.phase_peaks[LAYERS] for meter in meters], columns=(0, 1)),
        mixing=_fit(shapes, mixing, columns=(0, 1, 2, 3)) if any(mixing) else PhaseCost(),
        joined_token_bytes=joined,
        state_fixed_bytes=prefix.bytes - state_token_bytes * prefix.length,
        state_token_bytes=state_token_bytes,
    )


def _follow(backbone: Backbone, prefix: PrefixState, suffixes: list[list[int]]) -> PeakMeter:
    """Run branches once and return what was allocated, within recurrent layers and outside."""
    meter = PeakMeter()

    def enter(*_: object) -> None:
        meter.phase = MIXING

    def leave(*_: object) -> None:
        meter.phase = LAYERS

    leave()
    hooks = []
    for layer in backbone.recurrent_layers():
        hooks += [layer.register_forward_pre_hook(enter), layer.register_forward_hook(leave)]
    try:
        with meter:
            backbone.branches(prefix, suffixes)
    finally:
        for hook in hooks:
            hook.remove()
    return meter


def _whole_chunks(tokens: int) -> int:
    return -(-tokens // RECURRENT_CHUNK) * RECURRENT_CHUNK


def _fit(shapes: Sequence[GroupShape], peaks: Sequence[int], columns: Sequence[int]) -> PhaseCost:
    """Fit a phase's factors by least squares, none below 0, and no probe underestimated."""
    table = np.array([[1, s.tokens, s.mixed_tokens, s.mixed_branches] for s in shapes], dtype=float)
    target = np.array(peaks, dtype=float)
    used, factors = list(columns), np.zeros(table.shape[1])
    while used:
        found: NDArray[np.float64] = np.linalg.lstsq(table[:, used], target, rcond=None)[0]
        if (found >= 0).all():
            factors[used] = found
            break
        used.pop(int(found.argmin()))
    shortfall = max(1.0, float((target / (table @ factors)).max()))
    return PhaseCost(*(float(factor) * shortfall for factor in factors))


def _state_token_bytes(prefix: PrefixState) -> int:
    held = sum(
        t.numel() * t.element_size()
        for layer in prefix.layers
        if isinstance(layer, KeyValues)
        for t in (layer.keys, layer.values)
    )
    return held // prefix.length


def _joined_token_bytes(backbone: Backbone, prefix: PrefixState) -> int:
    """Return what joining keys and values of one layer takes a branch and token in views mode.

    Once as they are and once more repeated to the number of query heads, as scaled-dot-product
    attention with a mask needs them.
    """
    if backbone.branch_attention == "cascade":
        return 0
    heads = backbone.config.num_attention_heads
    layers = [layer.keys for layer in prefix.layers if isinstance(layer, KeyValues)]
    return max(
        (2 * k.shape[-1] * k.element_size() * (k.shape[1] + heads) for k in layers), default=0
    )
