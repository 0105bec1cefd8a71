"""sys1bench's canary set: its questions are asked as its own adapter sends them to System One."""

from dataclasses import replace

import pytest

from semif_bento.api.systemone.questions import to_question
from semif_bento.api.systemone.schema import SystemOneRequest, check
from semif_bento.engine.registry import KINDS
from semif_bento.errors import EvidenceError
from semif_bento.evidence import canary

ITEM = {
    "task_id": "t1",
    "domain": "support",
    "state": {"text": "Help!"},
    "questions": {
        "angry": {"type": "noul", "instructions": "Angry?", "criteria": None, "ground_truth": True},
        "queue": {
            "type": "choice",
            "instructions": "Which queue?",
            "criteria": [
                {"key": "billing", "description": "Invoices"},
                {"key": "other", "description": ""},
            ],
            "ground_truth": "other",
        },
        "urgency": {
            "type": "score",
            "instructions": "How urgent?",
            "criteria": [
                {"level": 1, "description": "Not at all"},
                {"level": 3, "description": ""},
            ],
            "ground_truth": 3,
        },
    },
}


def test_an_items_questions_are_rows_with_their_right_options():
    rows = canary.to_rows(7, ITEM)
    assert [row.answer for row in rows] == ["true", "other", "1"]
    assert [row.decision.kind for row in rows] == ["yes_no", "choice", "levels"]
    assert [row.tags["question"] for row in rows] == ["angry", "queue", "urgency"]
    assert {row.group for row in rows} == {"t1"}
    assert {row.line for row in rows} == {7}
    assert len({row.decision.id for row in rows}) == 3
    assert rows[0].state == {"text": "Help!"}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_they_are_worded_as_system_one_words_them(kind):
    sent = {
        "model": "m",
        "state": ITEM["state"],
        "questions": {
            "angry": {"type": "noul", "instructions": "Angry?"},
            "queue": {
                "type": "choice",
                "instructions": "Which queue?",
                "criteria": {"billing": "Invoices", "other": None},
            },
            "urgency": {
                "type": "score",
                "instructions": "How urgent?",
                "criteria": ["Not at all", "level 3"],
            },
        },
    }
    body = check(SystemOneRequest, sent)
    for row, (name, question) in zip(canary.to_rows(1, ITEM), body.questions.items(), strict=True):
        served = kind.word(to_question(name, question, 255))
        assert replace(row.word(kind).decision, id=name) == served


def test_a_right_option_that_is_not_offered_is_a_fault():
    choice = {**ITEM["questions"]["queue"], "ground_truth": "nowhere"}
    with pytest.raises(ValueError, match="not offered"):
        canary.to_rows(1, {**ITEM, "questions": {"queue": choice}})


def test_the_whole_set_is_read():
    file = canary.read_canary()
    assert len(file.rows) == 1100
    assert len({row.tags["question"] for row in file.rows}) == 11
    assert len({row.decision.id for row in file.rows}) == 1100


def test_a_set_of_another_form_is_said(tmp_path, monkeypatch):
    (tmp_path / "data" / "canary").mkdir(parents=True)
    (tmp_path / "data" / "canary" / "canary.jsonl").write_text('{"questions": 3}\n')
    monkeypatch.setattr(canary.resources, "files", lambda _: tmp_path)
    with pytest.raises(EvidenceError, match="Line 1 of sys1bench's canary set cannot be read"):
        canary.read_canary()


def test_without_the_package_that_is_said(monkeypatch):
    monkeypatch.setattr(canary, "PACKAGE", "no_such_package")
    with pytest.raises(EvidenceError, match="no_such_package is not installed"):
        canary.read_canary()
