"""A run that was ended goes on where it stopped, and only with the same rows and model."""

import dataclasses

import pytest
from samples import MODEL, ToldScorer, make_row

from semif_bento.errors import EvidenceError, RequestError
from semif_bento.evidence.journal import Journal
from semif_bento.evidence.scoring import score_rows

ROWS = [make_row(index) for index in range(6)]


def score(path, scorer, rows=ROWS):
    with Journal(path, scorer.identity) as journal:
        return score_rows(scorer, rows, "test", journal)


def test_what_was_scored_before_a_failure_is_not_scored_again(tmp_path):
    path = tmp_path / "new folder" / "rows.jsonl"
    scorer = ToldScorer()
    scorer.fail_after = 4
    with pytest.raises(RequestError):
        score(path, scorer)
    again = ToldScorer()
    found = score(path, again)
    assert len(scorer.calls) == 4
    assert len(again.calls) == 2
    assert found == score(tmp_path / "fresh", ToldScorer())


def test_a_line_that_was_cut_by_a_kill_is_scored_again_and_the_rest_is_kept(tmp_path):
    path = tmp_path / "rows.jsonl"
    whole = score(path, ToldScorer())
    path.write_bytes(path.read_bytes()[:-30])
    again = ToldScorer()
    assert score(path, again) == whole
    assert len(again.calls) == 1
    third = ToldScorer()
    assert score(path, third) == whole
    assert third.calls == []


@pytest.mark.parametrize("change", [{"source": "x"}, {"revision": "x"}, {"dtype": "bfloat16"}])
def test_answers_of_another_model_are_not_taken_and_stay(tmp_path, change):
    path = tmp_path / "rows.jsonl"
    score(path, ToldScorer())
    other = ToldScorer(identity=dataclasses.replace(MODEL, **change))
    score(path, other)
    assert len(other.calls) == len(ROWS)
    back = ToldScorer()
    score(path, back)
    assert back.calls == []


def test_a_changed_row_is_scored_again(tmp_path):
    path = tmp_path / "rows.jsonl"
    score(path, ToldScorer())
    again = ToldScorer()
    score(path, again, [*ROWS[:5], make_row(5, state="another state")])
    assert len(again.calls) == 1


def test_a_file_that_is_no_journal_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("dear diary\n")
    with pytest.raises(EvidenceError, match="not a journal that can be continued"):
        score(path, ToldScorer())
    assert path.read_text() == "dear diary\n"


def test_a_row_that_the_scorer_refuses_is_listed_by_line_and_stops_nothing(tmp_path):
    scorer = ToldScorer()
    scorer.refused = {"row2"}
    found = score(tmp_path / "rows.jsonl", scorer)
    assert len(found.rows) == len(ROWS) - 1
    assert found.row_errors == ("line 3: The prompt has 9 tokens; at most 8 are taken.",)
