"""The fit finds the temperature that made the labels; what is measured was not fitted on."""

import numpy as np
import pytest
from samples import exact_answers
from sklearn.linear_model import LogisticRegression

from semif_bento.evidence import temperature
from semif_bento.evidence.metrics import Answers, measure
from semif_bento.evidence.temperature import (
    FOLDS,
    HIGHEST,
    LOWEST,
    assign_folds,
    evaluate,
    fit_temperature,
)


@pytest.mark.parametrize("made_with", [0.3, 1.0, 1.23, 2.5, 7.0])
def test_the_temperature_that_made_the_labels_is_found(made_with):
    assert fit_temperature(exact_answers(made_with)) == pytest.approx(made_with, rel=1e-5)


def test_the_fit_is_a_logistic_regression_without_intercept():
    generator = np.random.default_rng(3)
    margins = generator.normal(0, 3, 500)
    right = (generator.random(500) > 1 / (1 + np.exp(-margins / 1.7))).astype(int)
    answers = Answers.of([[m, 0.0] for m in margins], right.tolist(), ["g"] * 500)
    model = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-10)
    model.fit(margins[:, None], right == 0)
    assert fit_temperature(answers) == pytest.approx(1 / model.coef_[0, 0], rel=1e-4)


@pytest.mark.parametrize(("logits", "bound"), [([0.0, 3.0], HIGHEST), ([3.0, 0.0], LOWEST)])
def test_labels_that_are_always_wrong_or_always_right_run_to_a_bound(logits, bound):
    answers = Answers.of([logits] * 20, [0] * 20, [str(n) for n in range(20)])
    found = evaluate(answers, seed=0)
    assert found.temperature == pytest.approx(bound, rel=0.01)
    assert found.at_bound


def test_a_fit_inside_the_range_is_not_at_a_bound():
    assert not evaluate(exact_answers(2.5, repeats=2), seed=0).at_bound


def test_a_group_is_never_split_and_folds_are_of_a_size():
    groups = np.repeat(np.arange(40), np.arange(40) % 5 + 1)
    folds = assign_folds(groups, np.random.default_rng(0))
    for group in range(40):
        assert len(set(folds[groups == group])) == 1
    sizes = np.bincount(folds, minlength=FOLDS)
    assert sizes.max() - sizes.min() <= 5


def test_a_rows_out_of_fold_temperature_never_saw_its_group(monkeypatch):
    answers = exact_answers(1.5, repeats=1)
    seen = []

    def fit(part):
        seen.append(set(part.groups.tolist()))
        return float(len(seen))

    monkeypatch.setattr(temperature, "fit_temperature", fit)
    found = evaluate(answers, seed=0)
    everyone = set(answers.groups.tolist())
    *without_a_fold, with_all = seen
    assert with_all == everyone
    assert found.fold_temperatures == (1, 2, 3, 4, 5)
    left_out = [everyone - fitted_on for fitted_on in without_a_fold]
    assert sorted(group for groups in left_out for group in groups) == sorted(everyone)
    used = np.array(
        [1 + next(k for k, out in enumerate(left_out) if g in out) for g in answers.groups]
    )
    expected = measure(answers, answers.log_probabilities(used.astype(float)))
    assert found.out_of_fold.nll.value == pytest.approx(expected.nll)


def test_calibrating_an_overconfident_model_lowers_its_error_and_says_by_how_much():
    found = evaluate(exact_answers(2.5), seed=0)
    assert found.out_of_fold.ece.value < found.raw.ece.value - 0.1
    assert found.change.ece.high < 0
    assert found.change.nll.value == pytest.approx(
        found.out_of_fold.nll.value - found.raw.nll.value
    )
    for each in (found.raw, found.out_of_fold, found.change):
        assert each.nll.low <= each.nll.value <= each.nll.high


def test_the_same_seed_gives_the_same_numbers_and_another_seed_other_intervals():
    answers = exact_answers(1.5, repeats=1)
    assert evaluate(answers, seed=1) == evaluate(answers, seed=1)
    assert evaluate(answers, seed=1).raw != evaluate(answers, seed=2).raw


def test_intervals_of_rows_in_few_groups_are_wider():
    many = exact_answers(2.0, repeats=2)
    few = Answers(many.logits, many.right, np.arange(len(many)) // 12)
    width = [(i.high - i.low) for i in (evaluate(a, 0).raw.nll for a in (many, few))]
    assert width[0] != width[1]
