"""The figures of an evaluation, against those worked out by hand and against scikit-learn's."""

import numpy as np
import pytest
from samples import make_row, make_scores
from sklearn.dummy import DummyClassifier
from sklearn.metrics import accuracy_score

from semif_bento.evidence.metrics import coverage_at_risk, wilson_interval
from semif_bento.evidence.quality import Asked, measure_questions, question_of


def ask(row, logits, other=None, seconds=1.0):
    """A row whose answer is `logits` by option, in every order, or `other` in the two others."""
    first = make_scores(row.decision, row.state, logits)
    second = make_scores(row.decision, row.state, logits if other is None else other)
    return Asked(row, first, second, first, seconds)


@pytest.mark.parametrize(
    ("right", "rows", "low", "high"),
    [
        (8, 10, 0.4901625, 0.9433178),  # (p + z²/2n ± z √(p(1−p)/n + z²/4n²)) / (1 + z²/n)
        (0, 10, 0.0, 0.2775328),
        (10, 10, 0.7224672, 1.0),
    ],
)
def test_the_interval_is_wilsons(right, rows, low, high):
    assert wilson_interval(right, rows) == pytest.approx((low, high), abs=1e-7)


@pytest.mark.parametrize(
    ("confidences", "is_right", "coverage"),
    [
        ([0.9, 0.8, 0.7, 0.6], [1, 1, 0, 1], 0.5),
        ([0.6, 0.9, 0.7, 0.8], [1, 1, 0, 1], 0.5),  # in any order
        ([0.9, 0.8], [0, 1], 0.0),
        ([0.9, 0.8], [1, 1], 1.0),
        ([0.9, 0.8, 0.8], [1, 1, 0], 1 / 3),  # equal confidences are never parted
        ([0.99 - n / 100 for n in range(20)], [0] + [1] * 19, 1.0),  # 1 wrong in 20 is allowed
        ([0.99 - n / 100 for n in range(19)], [0] + [1] * 18, 0.0),  # 1 in 19 is not
    ],
)
def test_coverage_is_the_largest_share_of_the_surest_that_stays_within_the_risk(
    confidences, is_right, coverage
):
    found = coverage_at_risk(np.array(confidences), np.array(is_right, dtype=bool), 0.05)
    assert found == pytest.approx(coverage)


def test_the_figures_of_four_rows_are_those_worked_out_by_hand():
    sure, even = [2.0, 0.0], [0.0, 0.0]
    rows = [make_row(n, answer=0 if n < 3 else 1, tags={"question": "q"}) for n in range(4)]
    asked = [
        ask(rows[0], sure, seconds=1.0),
        ask(rows[1], sure, [0.0, 2.0], seconds=3.0),
        ask(rows[2], even, [0.0, 0.0005], seconds=None),
        ask(rows[3], sure, seconds=2.0),
    ]
    [found] = measure_questions(asked, "float32")
    confidence = 1 / (1 + np.exp(-2))
    assert (found.question, found.rows, found.right, found.accuracy) == ("q", 4, 3, 0.75)
    assert found.majority == 0.75
    assert found.ece == pytest.approx((3 * (confidence - 2 / 3) + 0.5) / 4)
    assert (found.reversed.changed, found.reversed.near_ties, found.reversed.share) == (2, 1, 0.5)
    assert (found.rotated.changed, found.rotated.near_ties) == (0, 0)
    assert found.coverage == 0.0
    assert found.seconds == 2.0
    assert sum(each.count for each in found.bins) == 4


def test_accuracy_and_the_majority_answer_are_scikit_learns():
    generator = np.random.default_rng(3)
    rows = [
        make_row(n, 3, int(generator.integers(0, 3)), tags={"question": "q"}) for n in range(60)
    ]
    asked = [ask(row, generator.normal(size=3).tolist()) for row in rows]
    [found] = measure_questions(asked, "float32")
    right = [row.answer_index for row in rows]
    given = [int(np.argmax(each.scores.option_logits)) for each in asked]
    guess = DummyClassifier(strategy="most_frequent").fit(np.zeros((60, 1)), right)
    assert found.accuracy == pytest.approx(accuracy_score(right, given))
    assert found.majority == pytest.approx(guess.score(np.zeros((60, 1)), right))


def test_over_all_questions_the_majority_is_each_questions_own():
    rows = [
        make_row(0, answer=0, tags={"question": "a"}),
        make_row(1, answer=0, tags={"question": "a"}),
        make_row(2, answer=1, tags={"question": "b"}),
        make_row(3, answer=0, tags={"question": "b"}),
    ]
    first, second, both = measure_questions([ask(row, [1.0, 0.0]) for row in rows], "float32")
    assert [each.question for each in (first, second, both)] == ["a", "b", "all"]
    assert (first.majority, second.majority, both.majority) == (1.0, 0.5, 0.75)
    assert (first.accuracy, second.accuracy, both.accuracy) == (1.0, 0.5, 0.75)
    assert both.rows == 4


def test_a_row_is_counted_under_its_question_or_its_kind_or_its_text():
    assert question_of(make_row(0, tags={"question": "q", "kind": "k"})) == "q"
    assert question_of(make_row(0, tags={"kind": "k", "other": "o"})) == "k"
    assert question_of(make_row(0)) == "Which of 0?"
