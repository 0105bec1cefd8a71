"""Accuracy, negative log-likelihood, Brier score and calibration error of labelled answers.

Pure numbers; knows nothing of rows, models or reports.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

BINS = 15
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Answers:
    """N labelled answers: `logits` (N, K) padded with −inf, `right` (N,) places, `groups` (N,)."""

    logits: Floats
    right: Integers
    groups: Integers

    @classmethod
    def of(
        cls, logits: Sequence[Sequence[float]], right: Sequence[int], groups: Sequence[str]
    ) -> "Answers":
        """Pad rows of different lengths and number the groups in order of first appearance."""
        width = max(map(len, logits))
        padded = np.full((len(logits), width), -np.inf)
        for index, row in enumerate(logits):
            padded[index, : len(row)] = row
        numbers = {group: number for number, group in enumerate(dict.fromkeys(groups))}
        return cls(padded, np.array(right), np.array([numbers[group] for group in groups]))

    def take(self, chosen: NDArray[np.bool_] | Integers) -> "Answers":
        """Return the answers that a mask or an index chooses."""
        return Answers(self.logits[chosen], self.right[chosen], self.groups[chosen])

    def __len__(self) -> int:
        """Return N."""
        return len(self.right)

    @property
    def is_right(self) -> NDArray[np.bool_]:
        """Tell for each answer whether its first option is the right one (N,)."""
        return self.logits.argmax(axis=1) == self.right

    @property
    def option_counts(self) -> Integers:
        """Return the number of options of each answer (N,)."""
        return np.isfinite(self.logits).sum(axis=1)

    def log_probabilities(self, temperatures: float | Floats) -> Floats:
        """Return log softmax(logits / T) (N, K); one T, or one for each answer (N,)."""
        column = np.broadcast_to(np.asarray(temperatures, dtype=float), len(self))[:, None]
        return special.log_softmax(self.logits / column, axis=1)


@dataclass(frozen=True, slots=True)
class Figures:
    """Means over answers: NLL in nats, Brier in 0..2, ECE in 0..1."""

    nll: float
    brier: float
    ece: float


@dataclass(frozen=True, slots=True)
class Bin:
    """One bar of a reliability diagram; an empty bin has neither confidence nor accuracy."""

    low: float
    high: float
    count: int
    confidence: float | None
    accuracy: float | None


@dataclass(frozen=True, slots=True)
class Chance:
    """An accuracy beside guessing: `interval` is Clopper–Pearson's, at 95 %.

    `at_chance` says that the interval holds `chance`, the mean of 1 / options.
    """

    right: int
    rows: int
    accuracy: float
    interval: tuple[float, float]
    chance: float
    at_chance: bool


def measure(answers: Answers, log_probabilities: Floats) -> Figures:
    """Return the figures of answers with these log probabilities (N, K)."""
    rows = np.arange(len(answers))
    probabilities = np.exp(log_probabilities)
    target = np.zeros_like(probabilities)
    target[rows, answers.right] = 1.0
    return Figures(
        nll=float(-log_probabilities[rows, answers.right].mean()),
        brier=float(((probabilities - target) ** 2).sum(axis=1).mean()),
        ece=calibration_error(probabilities.max(axis=1), answers.is_right),
    )


def calibration_error(confidences: Floats, is_right: NDArray[np.bool_]) -> float:
    """Return the expected calibration error of top-label confidences over 15 equal-width bins.

    Σ over bins of share × |accuracy − mean confidence| (Naeini et al. 2015, Guo et al. 2017); a
    bin holds low < confidence ≤ high.
    """
    places = _bin_places(confidences)
    counts = np.bincount(places, minlength=BINS)
    gaps = np.bincount(places, weights=is_right - confidences, minlength=BINS)
    return float(np.abs(gaps).sum() / counts.sum())


def reliability(confidences: Floats, is_right: NDArray[np.bool_]) -> tuple[Bin, ...]:
    """Return the 15 bins of the calibration error, in order of confidence."""
    places = _bin_places(confidences)
    bins = []
    for place in range(BINS):
        inside = places == place
        count = int(inside.sum())
        bins.append(
            Bin(
                place / BINS,
                (place + 1) / BINS,
                count,
                float(confidences[inside].mean()) if count else None,
                float(is_right[inside].mean()) if count else None,
            )
        )
    return tuple(bins)


def compare_with_chance(answers: Answers) -> Chance:
    """Return the accuracy, its exact binomial interval, and whether that holds mere guessing."""
    right, rows = int(answers.is_right.sum()), len(answers)
    exact = stats.binomtest(right, rows).proportion_ci(CONFIDENCE, method="exact")
    chance = float((1 / answers.option_counts).mean())
    interval = (float(exact.low), float(exact.high))
    return Chance(right, rows, right / rows, interval, chance, interval[0] <= chance <= interval[1])


def wilson_interval(right: int, rows: int) -> tuple[float, float]:
    """Return Wilson's score interval of a share at 95 %, without continuity correction.

    Unlike the exact one it covers 95 % on average rather than at least (Brown, Cai and DasGupta
    2001), so it is the narrower.
    """
    found = stats.binomtest(right, rows).proportion_ci(CONFIDENCE, method="wilson")
    return float(found.low), float(found.high)


def coverage_at_risk(confidences: Floats, is_right: NDArray[np.bool_], risk: float) -> float:
    """Return the largest share of answers, the surest first, of which at most `risk` are wrong.

    Answers of one confidence are taken together or not at all: no threshold parts them. It is
    chosen on the answers that it is measured on, so it flatters a little, the more the fewer.

    Args:
        confidences: of the chosen options (N,).
        is_right: whether each is the right one (N,).
        risk: share of wrong answers among those taken, 0..1.
    """
    order = np.argsort(-confidences, kind="stable")
    taken = np.arange(1, len(order) + 1)
    wrong = np.cumsum(~is_right[order])
    sure = confidences[order]
    is_end = np.append(sure[1:] != sure[:-1], True)
    allowed = taken[is_end & (wrong <= risk * taken)]
    return float(allowed.max() / len(order)) if len(allowed) else 0.0


def _bin_places(confidences: Floats) -> Integers:
    return np.clip(np.ceil(confidences * BINS).astype(int) - 1, 0, BINS - 1)
