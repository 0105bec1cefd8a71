"""Metrics against closed forms and against scikit-learn's."""

import math

import numpy as np
import pytest
from sklearn import metrics as reference
from sklearn.calibration import calibration_curve

from semif_bento.evidence.metrics import (
    BINS,
    Answers,
    calibration_error,
    compare_with_chance,
    measure,
    reliability,
)


def random_answers(rows: int = 400, options: int = 4) -> Answers:
    generator = np.random.default_rng(1)
    logits = generator.normal(0, 2, (rows, options))
    return Answers.of(logits.tolist(), generator.integers(0, options, rows).tolist(), ["g"] * rows)


def test_even_logits_have_the_figures_of_a_coin():
    answers = Answers.of([[0.0, 0.0]] * 4, [0, 1, 0, 1], list("abcd"))
    found = measure(answers, answers.log_probabilities(1.0))
    assert found.nll == pytest.approx(math.log(2))
    assert found.brier == pytest.approx(0.5)
    assert found.ece == pytest.approx(0.0)  # 0.5 sure, half of them right


def test_sure_and_wrong_costs_everything():
    answers = Answers.of([[50.0, 0.0]] * 3, [1, 1, 1], list("abc"))
    found = measure(answers, answers.log_probabilities(1.0))
    assert found.nll == pytest.approx(50.0)
    assert found.brier == pytest.approx(2.0)
    assert found.ece == pytest.approx(1.0)


def test_rows_with_fewer_options_put_nothing_on_the_missing_ones():
    answers = Answers.of([[1.0, 2.0], [1.0, 2.0, 3.0]], [1, 2], ["a", "b"])
    found = np.exp(answers.log_probabilities(2.0))
    assert found.sum(axis=1) == pytest.approx([1, 1])
    assert found[0, 2] == 0
    assert answers.option_counts.tolist() == [2, 3]


def test_nll_and_brier_are_scikit_learns():
    answers = random_answers()
    logs = answers.log_probabilities(1.3)
    probabilities = np.exp(logs)
    found = measure(answers, logs)
    assert found.nll == pytest.approx(
        reference.log_loss(answers.right, probabilities, labels=range(4))
    )
    each = sum(
        reference.brier_score_loss(answers.right == place, probabilities[:, place])
        for place in range(4)
    )
    assert found.brier == pytest.approx(each)


def test_the_calibration_error_is_that_of_scikit_learns_curve():
    answers = random_answers()
    confidences = np.exp(answers.log_probabilities(1.0)).max(axis=1)
    shares, means = calibration_curve(answers.is_right, confidences, n_bins=BINS)
    counts = np.histogram(confidences, bins=np.linspace(0, 1, BINS + 1))[0]
    expected = (counts[counts > 0] * np.abs(shares - means)).sum() / len(answers)
    assert calibration_error(confidences, answers.is_right) == pytest.approx(expected)


def test_reliability_bins_hold_every_answer_once_and_add_up_to_the_calibration_error():
    answers = random_answers()
    confidences = np.exp(answers.log_probabilities(1.0)).max(axis=1)
    bins = reliability(confidences, answers.is_right)
    assert sum(each.count for each in bins) == len(answers)
    gaps = [
        each.count * abs(each.accuracy - each.confidence)
        for each in bins
        if each.accuracy is not None and each.confidence is not None
    ]
    assert sum(gaps) / len(answers) == pytest.approx(
        calibration_error(confidences, answers.is_right)
    )


def test_a_confidence_on_an_edge_falls_into_the_bin_below():
    counts = [each.count for each in reliability(np.array([1 / 3]), np.array([True]))]
    assert counts.index(1) == 4  # 4/15 to 5/15


def test_confidence_1_falls_into_the_last_bin():
    [*_, last] = reliability(np.array([1.0]), np.array([True]))
    assert last.count == 1


@pytest.mark.parametrize(("right", "at_chance"), [(10, True), (14, True), (15, False), (5, False)])
def test_chance_is_told_by_the_exact_binomial_interval(right, at_chance):
    labels = [0] * right + [1] * (20 - right)
    answers = Answers.of([[1.0, 0.0]] * 20, labels, ["g"] * 20)
    found = compare_with_chance(answers)
    assert (found.right, found.chance, found.at_chance) == (right, 0.5, at_chance)


def test_the_interval_is_clopper_and_pearsons():
    found = compare_with_chance(Answers.of([[1.0, 0.0]] * 10, [1] * 10, ["g"] * 10))
    assert found.interval == pytest.approx((0.0, 1 - 0.025 ** (1 / 10)))
