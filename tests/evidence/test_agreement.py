"""Agreement: near ties are told apart from disagreements, and gaps are the largest there are."""

import pytest
from samples import make_row, make_scored

from semif_bento.errors import EvidenceError
from semif_bento.evidence.agreement import compare_answers
from semif_bento.evidence.checks import shuffle_descriptions
from semif_bento.evidence.noise import rounding_step, take_noise
from semif_bento.evidence.rows import bundled_rows, read_rows

ROWS = [make_row(index) for index in range(3)]


def compare(ours, theirs, noise=0.1):
    return compare_answers(make_scored(ROWS, ours).scores, make_scored(ROWS, theirs).scores, noise)


def test_the_same_answers_agree_in_everything():
    found = compare([[1, 2]] * 3, [[1, 2]] * 3)
    assert (found.rows, found.hashes, found.winners, found.gap) == (3, 3, 3, 0)
    assert found.probability_gap == 0
    assert found.within(0.0) == 3


def test_a_flip_is_a_near_tie_when_the_noise_closes_the_smaller_margin():
    found = compare([[1.0, 1.05], [1, 3], [5, 1]], [[1.3, 1.0], [3, 1], [5, 1]])
    assert [flip.row_id for flip in found.near_ties] == ["row0"]
    assert [flip.row_id for flip in found.disagreements] == ["row1"]
    [flip] = found.near_ties
    assert flip.margin == pytest.approx(0.05)
    assert flip.gap == pytest.approx(0.3)
    assert (flip.ours, flip.theirs) == ("o1", "o0")
    assert found.winners == 1


def test_an_exact_tie_is_a_near_tie_without_any_noise():
    found = compare([[1, 1], [1, 2], [1, 2]], [[1, 2], [1, 2], [1, 2]], noise=0.0)
    assert len(found.near_ties) == 1
    assert found.disagreements == ()


def test_within_counts_rows_with_the_same_winner_and_close_logits():
    found = compare([[1.0, 1.05], [1, 2], [1, 2]], [[1.06, 1.0], [1, 2.05], [1, 9]])
    assert found.within(0.1) == 1  # row0 flipped, row2 is far off


def test_answers_with_other_options_cannot_be_compared():
    other = [make_row(0, options=3), *ROWS[1:]]
    with pytest.raises(EvidenceError, match="'row0' have different options"):
        compare_answers(
            make_scored(ROWS, [[1, 2]] * 3).scores,
            make_scored(other, [[1, 2, 3], [1, 2], [1, 2]]).scores,
            0.1,
        )


@pytest.mark.parametrize(
    ("value", "dtype", "step"),
    [
        (33.0, "bfloat16", 0.25),
        (31.0, "bfloat16", 0.125),
        (1.0, "float16", 2**-10),
        (0.0, "float32", 2**-23),
    ],
)
def test_a_rounding_step_is_the_distance_to_the_next_number(value, dtype, step):
    assert rounding_step(value, dtype) == step


@pytest.mark.parametrize(
    ("repeated", "regrouped", "logit", "allowed"),
    [(0.0, 0.0, 1.0, 0.25), (0.0, 0.4, 1.0, 0.4), (0.6, 0.4, 1.0, 0.6), (0.0, 0.0, -70.0, 1.0)],
)
def test_the_allowed_noise_is_the_largest_of_its_sources(repeated, regrouped, logit, allowed):
    answers = make_scored(ROWS, [[logit, 0.0]] * 3).scores
    assert take_noise(repeated, regrouped, answers, "bfloat16").allowed == allowed


def test_shuffling_moves_every_description_keeps_ids_in_place_and_repeats_with_its_seed():
    rows = read_rows(bundled_rows(), labelled=True).rows
    shuffled = shuffle_descriptions(rows, seed=4)
    for before, after in zip(rows, shuffled, strict=True):
        old, new = before.decision.options, after.decision.options
        assert [option.id for option in new] == [option.id for option in old]
        assert sorted(o.description for o in new) == sorted(o.description for o in old)
        assert all(a.description != b.description for a, b in zip(old, new, strict=True))
    assert shuffle_descriptions(rows, seed=4) == shuffled
    assert shuffle_descriptions(rows, seed=5) != shuffled
