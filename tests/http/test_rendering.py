"""Outcomes to response bodies, as pure functions."""

import dataclasses
import math
from typing import Any

import pytest
from models.echo.opening import EchoEngine

from semif_bento.api import rendering
from semif_bento.api.results import DecisionResult
from semif_bento.api.schema import DecideRequest, SharedRequest
from semif_bento.calibration import CalibrationTable
from semif_bento.decisions import Decision, DirectOutcome, ModelIdentity, Option, Scores
from semif_bento.protocol import softmax

MODEL = ModelIdentity("model", "r1", "bfloat16", "cpu", "2", "5")
TABLE = CalibrationTable({"hot": 4.0})
OPTIONS = [{"id": "y", "description": "Yes"}, {"id": "n", "description": "No"}]


def result_of(found: DirectOutcome, model: ModelIdentity = MODEL, **asked: Any) -> DecisionResult:
    engine: Any = EchoEngine()
    engine.identity = model
    row = {"id": "d", "state": "s", "question": "q", "options": OPTIONS, **asked}
    return rendering.to_direct_result(found, engine, TABLE, DecideRequest.model_validate(row))


def outcome(*logits: float, letter_mass: float | None = None) -> DirectOutcome:
    ids = tuple("yn"[: len(logits)])
    scores = Scores("d", ids, logits, softmax(logits), 9, "0" * 64, letter_mass)
    return DirectOutcome(scores, 0.1, 0.2)


def test_a_row_becomes_one_decision_in_the_order_sent():
    body = DecideRequest.model_validate(
        {"id": "d", "state": ["s"], "question": "q", "options": OPTIONS, "diagnostics": True}
    )
    request = rendering.to_direct_request(body)
    assert request.state == ["s"]
    assert request.diagnostics is True
    assert request.decisions == (Decision("d", "q", (Option("y", "Yes"), Option("n", "No"))),)


def test_shared_decisions_stay_in_the_order_sent():
    decisions = [{"id": name, "question": "q", "options": OPTIONS} for name in ("b", "a")]
    body = SharedRequest.model_validate({"state": "s", "decisions": decisions})
    assert [d.id for d in rendering.to_shared_request(body).decisions] == ["b", "a"]


def test_what_nobody_asked_for_is_left_out_and_not_null():
    dumped = result_of(outcome(1.0, 2.0)).model_dump()
    assert not {"calibrated", "diagnostics"} & dumped.keys()
    assert None not in dumped.values()


def test_a_calibrated_view_divides_the_logits_and_keeps_the_winner():
    result = result_of(outcome(1.0, 2.0), workload="hot")
    assert result.calibrated
    assert result.calibrated.probabilities == pytest.approx(
        [1 / (1 + math.exp(0.25)), 1 / (1 + math.exp(-0.25))]
    )
    assert result.probabilities == list(softmax((1.0, 2.0)))


@pytest.mark.parametrize(
    ("dtype", "gap", "is_tie"),
    [("bfloat16", 0.25, True), ("bfloat16", 0.375, False), ("float32", 0.25, False)],
)
def test_a_near_tie_depends_on_the_gap_and_the_dtype(dtype, gap, is_tie):
    model = dataclasses.replace(MODEL, dtype=dtype)
    result = result_of(outcome(1.0, 1.0 + gap, letter_mass=0.5), model, diagnostics=True)
    assert result.diagnostics
    assert result.diagnostics.near_tie is is_tie
    assert result.diagnostics.margin == pytest.approx(abs(result.probabilities[0] * 2 - 1))
