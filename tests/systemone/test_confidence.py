"""The two confidence formulas against what the service answered, to its two decimals."""

import pytest

from semif_bento.api.confidence import choice_confidence, score_confidence

PRINTED = 0.016  # both sides were printed with two decimals


def peaked(n: int, peak: float) -> list[float]:
    return [peak, *[(1 - peak) / (n - 1)] * (n - 1)]


@pytest.mark.parametrize(
    ("n", "peak", "recorded"),
    [(3, 0.82, 0.73), (3, 0.91, 0.87), (4, 0.98, 0.97), (6, 0.56, 0.47), (5, 0.42, 0.29)],
)
def test_choices_as_recorded(n, peak, recorded):
    assert choice_confidence(peaked(n, peak)) == pytest.approx(recorded, abs=PRINTED)


@pytest.mark.parametrize(
    ("probabilities", "recorded"),
    [([0, 0, 0.48, 0.52], 0.52), ([0, 0.14, 0.86, 0, 0], 0.885)],
)
def test_scores_as_recorded(probabilities, recorded):
    assert score_confidence(probabilities) == pytest.approx(recorded, abs=PRINTED)


def test_a_choice_that_looks_like_a_score_has_the_formula_of_a_choice():
    assert choice_confidence([0.40, 0.34, 0.24, 0.02]) == pytest.approx(0.20, abs=PRINTED)


@pytest.mark.parametrize("formula", [choice_confidence, score_confidence])
@pytest.mark.parametrize("n", [1, 2, 3, 10, 255])
def test_certainty_is_1_and_nothing_known_0(formula, n):
    assert formula([1.0] + [0.0] * (n - 1)) == 1.0
    if n > 1:
        assert formula([1 / n] * n) == pytest.approx(0, abs=1e-12)


def test_a_score_spread_wider_than_uniform_is_0_and_no_less():
    assert score_confidence([0.5, 0.0, 0.0, 0.0, 0.5]) == 0.0
