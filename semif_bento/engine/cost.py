"""What a forward over a group of branches takes, from a few small ones measured at start.

Knows nothing of budgets or of the memory that is free at a moment. The cost is linear in a few
figures of the group's shape; its factors come from following what the loaded model allocates.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from semif_bento.engine.backbone import Backbone
from semif_bento.engine.meter import PeakMeter
from semif_bento.engine.prefix import KeyValues, PrefixState
from semif_bento.engine.shape import GroupShapes

logger = logging.getLogger(__name__)

PROBE_PREFIX_TOKENS = 64
PROBE_GROUPS = ([64], [256], [64] * 4, [65] * 4, [20, 40, 70, 100, 130])
"""Suffix lengths of the groups that the cost is measured on."""
JOINING_PREFIX_TOKENS = 2048
JOINING_PROBES = (
    *(([8], 2), ([8], 1), ([8] * 4, 2), ([64], 1), ([32] * 4, 1), ([128], 2), ([256], 1)),
)
"""Where prefixes are joined to each branch: groups, and the divisor of the prefix's tokens."""

LAYERS, MIXING = "layers", "mixing"


@dataclass(frozen=True, slots=True)
class PhaseCost:
    """Bytes of one phase of a forward: fixed, and a factor for each figure of a shape."""

    fixed_bytes: float = 0.0
    token_bytes: float = 0.0
    mixed_token_bytes: float = 0.0
    mixed_branch_bytes: float = 0.0
    joined_token_bytes: float = 0.0
    masked_pair_bytes: float = 0.0

    def of(self, shapes: GroupShapes) -> NDArray[np.float64]:
        """Return the bytes this phase takes for a growing group, (B,)."""
        return (
            self.fixed_bytes
            + shapes.tokens * self.token_bytes
            + shapes.mixed_tokens * self.mixed_token_bytes
            + shapes.mixed_branches * self.mixed_branch_bytes
            + shapes.joined_tokens * self.joined_token_bytes
            + shapes.masked_pairs * self.masked_pair_bytes
        )


@dataclass(frozen=True, slots=True)
class CostModel:
    """Bytes of a forward: what its most expensive phase takes, beside a mask where there is one.

    Phases are the layers at large, the recurrent mixing (zero for a model without), and the
    joining of prefix and suffix (zero where prefixes are read in place).
    `state_fixed_bytes + state_token_bytes × P` is what a prefilled state of P tokens holds.
    """

    layers: PhaseCost
    mixing: PhaseCost
    joining: PhaseCost
    is_padded: bool
    state_fixed_bytes: int
    state_token_bytes: int

    def group_bytes(self, lengths: Sequence[int], prefix_tokens: int) -> int:
        """Return the bytes that running branches of these lengths takes beside their state."""
        return int(self.growing_bytes(sorted(lengths), prefix_tokens)[-1])

    def growing_bytes(self, lengths: Sequence[int], prefix_tokens: int) -> NDArray[np.int64]:
        """Return what the first branch takes, the first two, and so on; lengths ascend."""
        shapes = GroupShapes.of(lengths, prefix_tokens, is_padded=self.is_padded)
        phases = [phase.of(shapes) for phase in (self.layers, self.mixing, self.joining)]
        return np.maximum.reduce(phases).astype(np.int64) + shapes.mask_bytes

    def state_bytes(self, prefix_tokens: int) -> int:
        """Return the bytes a prefilled state holds."""
        return self.state_fixed_bytes + self.state_token_bytes * prefix_tokens

    def longest_state(self, available_bytes: int) -> int:
        """Return the most tokens whose prefilled state takes no more than so many bytes."""
        return max(0, (available_bytes - self.state_fixed_bytes) // self.state_token_bytes)

    def largest_bytes(self, max_tokens: int) -> int:
        """Return what the most demanding legal prompt takes when its branch runs alone."""
        return self.group_bytes([max_tokens], 0) + self.state_bytes(max_tokens)


def measure_cost(backbone: Backbone) -> CostModel:
    """Measure the factors of a model's cost by following a few small forwards."""
    is_padded = backbone.branch_attention == "views"
    count = len(PROBE_GROUPS) + is_padded * len(JOINING_PROBES)
    logger.info("measuring the memory of %d groups of branches", count)
    prefix = backbone.prefill([0] * PROBE_PREFIX_TOKENS)
    probes = [(lengths, prefix.length) for lengths in PROBE_GROUPS]
    shapes = [GroupShapes.of(*probe, is_padded=is_padded) for probe in probes]
    meters = [_follow(backbone, prefix, lengths) for lengths, _ in probes]
    mixing = [meter.phase_peaks.get(MIXING, 0) for meter in meters]
    state_token_bytes = _state_token_bytes(prefix)
    return CostModel(
        layers=_fit(shapes, [meter.phase_peaks[LAYERS] for meter in meters], columns=(0, 1)),
        mixing=_fit(shapes, mixing, columns=(0, 1, 2, 3)) if any(mixing) else PhaseCost(),
        joining=_joining(backbone, prefix) if is_padded else PhaseCost(),
        is_padded=is_padded,
        state_fixed_bytes=prefix.bytes - state_token_bytes * prefix.length,
        state_token_bytes=state_token_bytes,
    )


def _joining(backbone: Backbone, prefix: PrefixState) -> PhaseCost:
    """Measure what joining takes, on prefixes so long that nothing else counts."""
    places = getattr(backbone.config, "max_position_embeddings", None) or JOINING_PREFIX_TOKENS
    longest = min(JOINING_PREFIX_TOKENS, places // 2)
    probes = [(lengths, longest // share) for lengths, share in JOINING_PROBES]
    shapes = [GroupShapes.of(*probe, is_padded=True) for probe in probes]
    peaks = [
        _follow(backbone, lengthened(prefix, tokens), lengths).phase_peaks[LAYERS]
        for lengths, tokens in probes
    ]
    return _fit(shapes, peaks, columns=(0, 1, 4, 5))


def lengthened(prefix: PrefixState, tokens: int) -> PrefixState:
    """Return a state as if of so many tokens: its first token's keys and values, repeated as views.

    It has the shape of the real thing and takes no memory; its numbers mean nothing.
    """
    layers = [
        KeyValues(*(t[:, :, :1].expand(-1, -1, tokens, -1) for t in (layer.keys, layer.values)))
        if isinstance(layer, KeyValues)
        else layer
        for layer in prefix.layers
    ]
    return PrefixState(tokens, tuple(layers))


def _follow(backbone: Backbone, prefix: PrefixState, lengths: Sequence[int]) -> PeakMeter:
    """Run branches of these lengths once; return what was allocated in and outside of mixing."""
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
            backbone.branches(prefix, [[0] * length for length in lengths])
    finally:
        for hook in hooks:
            hook.remove()
    return meter


def _fit(shapes: Sequence[GroupShapes], peaks: Sequence[int], columns: Sequence[int]) -> PhaseCost:
    """Fit a phase's factors by least squares, none below 0, and no probe underestimated."""
    table = np.array([_figures(shape) for shape in shapes], dtype=float)
    beside = [int(shape.mask_bytes[-1]) for shape in shapes]
    target = np.array([peak - mask for peak, mask in zip(peaks, beside, strict=True)], dtype=float)
    used, factors = list(columns), np.zeros(table.shape[1])
    while used:
        found: NDArray[np.float64] = np.linalg.lstsq(table[:, used], target, rcond=None)[0]
        if (found >= 0).all():
            factors[used] = found
            break
        used.pop(int(found.argmin()))
    shortfall = max(1.0, float((target / (table @ factors)).max()))
    return PhaseCost(*(float(factor) * shortfall for factor in factors))


def _figures(shapes: GroupShapes) -> tuple[int, ...]:
    """Return what the factors of `PhaseCost` are multiplied with for all branches, in its order."""
    figures = (
        *(shapes.tokens, shapes.mixed_tokens, shapes.mixed_branches),
        *(shapes.joined_tokens, shapes.masked_pairs),
    )
    return 1, *(int(figure[-1]) for figure in figures)


def _state_token_bytes(prefix: PrefixState) -> int:
    held = sum(
        t.numel() * t.element_size()
        for layer in prefix.layers
        if isinstance(layer, KeyValues)
        for t in (layer.keys, layer.values)
    )
    return held // prefix.length
