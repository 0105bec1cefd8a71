"""Fit one temperature, and measure it on rows that it was not fitted on.

Knows nothing of rows, models or files.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import optimize

from semif_bento.evidence.metrics import (
    CONFIDENCE,
    Answers,
    Bin,
    Chance,
    Figures,
    Floats,
    Integers,
    compare_with_chance,
    measure,
    reliability,
)

LOWEST, HIGHEST = 0.05, 20.0
FOLDS = 5
RESAMPLES = 1000
AT_BOUND = 1.01  # a factor: nearer to a bound than this is the bound


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure with the ends of its 95 % bootstrap interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Intervals:
    """The figures of one way to answer, each with its interval."""

    nll: Interval
    brier: Interval
    ece: Interval


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What a temperature is worth.

    `temperature` is fitted on all rows. `out_of_fold` figures use for each row a temperature
    fitted without its fold; `change` is out of fold minus raw, resampled in pairs.
    """

    temperature: float
    fold_temperatures: tuple[float, ...]
    chance: Chance
    raw: Intervals
    out_of_fold: Intervals
    change: Intervals
    bins_raw: tuple[Bin, ...]
    bins_out_of_fold: tuple[Bin, ...]

    @property
    def at_bound(self) -> bool:
        """Tell whether the fit ran into the end of the range, so there is no minimum inside."""
        return not LOWEST * AT_BOUND < self.temperature < HIGHEST / AT_BOUND


def fit_temperature(answers: Answers) -> float:
    """Return the T in 0.05..20 that minimises the mean negative log-likelihood.

    The NLL is convex in 1 / T, so it has one valley in log(1 / T) as well, and a bounded scalar
    search (Brent's) finds it.
    """
    rows = np.arange(len(answers))

    def nll(log_inverse: float) -> float:
        return float(-answers.log_probabilities(math.exp(-log_inverse))[rows, answers.right].mean())

    bounds = (-math.log(HIGHEST), -math.log(LOWEST))
    found = optimize.minimize_scalar(
        nll, bounds=bounds, method="bounded", options={"xatol": 1e-7, "maxiter": 200}
    )
    # Where the likelihood runs flat towards a bound the search stops before it.
    return math.exp(-min((*bounds, float(found.x)), key=nll))


def evaluate(answers: Answers, seed: int) -> Evaluation:
    """Fit on all rows, fit again for each fold, and resample the figures by group.

    Args:
        answers: at least `FOLDS` groups.
        seed: of the folds and the bootstrap; the same seed gives the same numbers.
    """
    generator = np.random.default_rng(seed)
    folds = assign_folds(answers.groups, generator)
    fitted = [fit_temperature(answers.take(folds != fold)) for fold in range(FOLDS)]
    before = answers.log_probabilities(1.0)
    after = answers.log_probabilities(np.array(fitted)[folds])
    raw, out_of_fold, change = _resample(answers, before, after, generator)
    return Evaluation(
        temperature=fit_temperature(answers),
        fold_temperatures=tuple(fitted),
        chance=compare_with_chance(answers),
        raw=raw,
        out_of_fold=out_of_fold,
        change=change,
        bins_raw=reliability(np.exp(before).max(axis=1), answers.is_right),
        bins_out_of_fold=reliability(np.exp(after).max(axis=1), answers.is_right),
    )


def assign_folds(groups: Integers, generator: np.random.Generator) -> Integers:
    """Return each row's fold (N,); a group is never split, and folds hold about as many rows.

    Groups come in random order, the larger ones first, each into the fold that is smallest so far.
    """
    sizes = np.bincount(groups)
    order = generator.permutation(len(sizes))
    order = order[np.argsort(-sizes[order], kind="stable")]
    filled, fold_of = np.zeros(FOLDS, dtype=int), np.zeros(len(sizes), dtype=int)
    for group in order:
        fold_of[group] = filled.argmin()
        filled[fold_of[group]] += sizes[group]
    return fold_of[groups]


def _resample(
    answers: Answers, before: Floats, after: Floats, generator: np.random.Generator
) -> tuple[Intervals, Intervals, Intervals]:
    """Draw whole groups with replacement; return raw, out of fold, and their paired change."""
    members = [np.flatnonzero(answers.groups == group) for group in np.unique(answers.groups)]

    def figures(chosen: Integers) -> tuple[Figures, Figures]:
        drawn = answers.take(chosen)
        return measure(drawn, before[chosen]), measure(drawn, after[chosen])

    point = figures(np.arange(len(answers)))
    drawn = [
        figures(
            np.concatenate(
                [members[g] for g in generator.integers(len(members), size=len(members))]
            )
        )
        for _ in range(RESAMPLES)
    ]

    def intervals(read: Callable[[tuple[Figures, Figures], str], float]) -> Intervals:
        found = []
        for name in ("nll", "brier", "ece"):
            tails = [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]
            low, high = np.quantile([read(pair, name) for pair in drawn], tails)
            found.append(Interval(read(point, name), float(low), float(high)))
        return Intervals(*found)

    return (
        intervals(lambda pair, name: getattr(pair[0], name)),
        intervals(lambda pair, name: getattr(pair[1], name)),
        intervals(lambda pair, name: getattr(pair[1], name) - getattr(pair[0], name)),
    )
