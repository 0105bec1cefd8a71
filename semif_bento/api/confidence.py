"""System One's two confidence formulas; knows nothing of questions or models.

They were recovered from answers of the service, which agree with them to the two decimals that it
prints. Both are 1 where there is one option only, and 0 for a distribution that says nothing.
"""

from collections.abc import Sequence

FORMULAS = "peak-over-uniform;mode-distance"
"""Names of the two, for choices and for scores, as a header of every answer gives them."""


def choice_confidence(probabilities: Sequence[float]) -> float:
    """Return (max p − 1/n) / (1 − 1/n), in 0..1."""
    n = len(probabilities)
    if n == 1:
        return 1.0
    return max(0.0, (max(probabilities) - 1 / n) / (1 - 1 / n))


def score_confidence(probabilities: Sequence[float]) -> float:
    """Return 1 less the mean distance from the likeliest level m, in 0..1.

    The distance Σ pᵢ·|i − m| is measured in that of a uniform distribution from its middle, the
    mean of |i − (n − 1)/2|; a larger one counts as 0.
    """
    n = len(probabilities)
    if n == 1:
        return 1.0
    mode = max(range(n), key=lambda level: probabilities[level])
    distance = sum(p * abs(level - mode) for level, p in enumerate(probabilities))
    uniform = sum(abs(level - (n - 1) / 2) for level in range(n)) / n
    return max(0.0, 1 - distance / uniform)
