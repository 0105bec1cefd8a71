"""A service as a scorer: the same answers, and a clear end where it fails, is gone or changes."""

import httpx
import pytest
from samples import MODEL, ToldScorer, make_row
from stub import TOKEN

from semif_bento.decisions import ScoreRequest
from semif_bento.errors import EvidenceError, InvalidRequest
from semif_bento.evidence.journal import Journal
from semif_bento.evidence.scoring import score_rows
from semif_bento.evidence.service import TRIES, ServiceScorer
from semif_bento.evidence.target import open_service

ROWS = [make_row(index) for index in range(5)]
SHARED = ScoreRequest("one state", tuple(row.decision for row in ROWS))


def test_answers_are_those_of_a_scorer_in_process(stub):
    remote, local = ServiceScorer(stub.url, TOKEN), ToldScorer()
    assert remote.identity == MODEL
    assert remote.direct(ROWS[0].request()).scores == local.direct(ROWS[0].request()).scores
    assert remote.shared(SHARED) == local.shared(SHARED)
    assert remote.status() == local.status()


def test_a_target_knows_the_limits_that_the_service_tells(stub):
    target = open_service(f"{stub.url}/", TOKEN)
    assert (target.place, target.max_tokens, target.max_decisions) == (stub.url, 600, 24)
    assert target.loaded is None


def test_a_wrong_token_is_said(stub):
    with pytest.raises(EvidenceError, match="refuses the token"):
        ServiceScorer(stub.url, "x" * 40)
    assert stub.asked == 0


def test_a_service_that_is_not_there_is_said(stub):
    stub.stop()
    with pytest.raises(EvidenceError, match="cannot be reached: ConnectError"):
        ServiceScorer(stub.url, TOKEN)


def test_a_service_that_dies_in_the_middle_keeps_what_was_scored(stub, tmp_path):
    scorer = ServiceScorer(stub.url, TOKEN)
    path = tmp_path / "rows.jsonl"
    with Journal(path, scorer.identity) as journal:
        score_rows(scorer, ROWS[:3], "test", journal)
        stub.stop()
        with pytest.raises(EvidenceError, match="cannot be reached"):
            score_rows(scorer, ROWS, "test", journal)
    assert len(path.read_text().splitlines()) == 3


def test_a_model_that_changes_in_the_middle_ends_it_and_keeps_what_was_scored(stub, tmp_path):
    scorer = ServiceScorer(stub.url, TOKEN)
    stub.changes_after = 1 + 2  # the probe, and two rows
    path = tmp_path / "rows.jsonl"
    with Journal(path, scorer.identity) as journal:
        with pytest.raises(EvidenceError, match="changed its model: scripted at r2 answers"):
            score_rows(scorer, ROWS, "test", journal)
        assert [journal.get(row) is not None for row in ROWS] == [True, True, False, False, False]


def test_a_changed_model_is_noticed_in_shared_answers_too(stub):
    scorer = ServiceScorer(stub.url, TOKEN)
    stub.changes_after = 1
    with pytest.raises(EvidenceError, match="changed its model"):
        scorer.shared(SHARED)


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_service_is_asked_again(stub, status):
    scorer = ServiceScorer(stub.url, TOKEN)
    stub.refusals = [status] * (TRIES - 1)
    assert scorer.direct(ROWS[0].request()).scores.decision_id == "row0"


def test_a_service_that_stays_busy_is_said(stub):
    scorer = ServiceScorer(stub.url, TOKEN)
    stub.refusals = [429] * TRIES
    with pytest.raises(EvidenceError, match="answered 429: Not now"):
        scorer.direct(ROWS[0].request())
    assert stub.asked == 1


def test_a_refused_row_is_the_rows_fault_and_a_failure_the_services(stub):
    scorer = ServiceScorer(stub.url, TOKEN)
    stub.refusals = [422, 500]
    with pytest.raises(InvalidRequest, match="Not now"):
        scorer.direct(ROWS[0].request())
    with pytest.raises(EvidenceError, match="answered 500: Not now"):
        scorer.direct(ROWS[0].request())


def test_an_answer_that_is_not_of_this_service_is_said(stub, monkeypatch):
    scorer = ServiceScorer(stub.url, TOKEN)
    page = httpx.Response(200, text="<html>", request=httpx.Request("POST", stub.url))
    monkeypatch.setattr(httpx.Client, "request", lambda *args, **kwargs: page)
    with pytest.raises(EvidenceError, match="its answer is not of this service"):
        scorer.direct(ROWS[0].request())
