"""Turns checked bodies into the engine's requests, and its outcomes into response bodies.

Pure functions; knows nothing of HTTP, queues or where a scorer runs.
"""

from dataclasses import asdict
from typing import Any

from semif_bento.api.results import (
    Calibrated,
    DecisionResult,
    Diagnostics,
    Model,
    Provenance,
    SharedDecisionResult,
    SharedModel,
    SharedResponse,
    Timing,
    WorkloadCalibration,
)
from semif_bento.api.schema import DecideRequest, DecisionBody, SharedRequest
from semif_bento.calibration import CalibrationTable
from semif_bento.decisions import (
    Decision,
    DirectOutcome,
    Engine,
    Option,
    ScoreRequest,
    Scores,
    SharedOutcome,
)
from semif_bento.protocol import is_near_tie, margin


def to_direct_request(body: DecideRequest) -> ScoreRequest:
    """Return the engine's request for POST /decide."""
    return ScoreRequest(body.state, (_decision(body),), body.diagnostics)


def to_shared_request(body: SharedRequest) -> ScoreRequest:
    """Return the engine's request for POST /decide/shared."""
    return ScoreRequest(body.state, tuple(map(_decision, body.decisions)), body.diagnostics)


def to_direct_result(
    outcome: DirectOutcome, engine: Engine, table: CalibrationTable, body: DecideRequest
) -> DecisionResult:
    """Return the body that answers POST /decide.

    Raises:
        InvalidRequest: the table does not hold the workload that was asked for.
    """
    return DecisionResult(
        **_answer(outcome.scores, engine, table, body),
        forward_seconds=outcome.forward_seconds,
        total_seconds=outcome.total_seconds,
        model=Model(**asdict(engine.identity)),
        readout=engine.direct_readout,
    )


def to_shared_response(
    outcome: SharedOutcome, engine: Engine, table: CalibrationTable, body: SharedRequest
) -> SharedResponse:
    """Return the body that answers POST /decide/shared, in request order.

    Raises:
        InvalidRequest: the table does not hold the workload that was asked for.
    """
    model = SharedModel(**asdict(engine.identity), serving_config=outcome.serving_config)
    results = [
        SharedDecisionResult(
            **_answer(scores, engine, table, body), model=model, readout=engine.shared_readout
        )
        for scores in outcome.scores
    ]
    return SharedResponse(results=results, timing=Timing(**asdict(outcome.timing)))


def _answer(
    scores: Scores, engine: Engine, table: CalibrationTable, body: DecideRequest | SharedRequest
) -> dict[str, Any]:
    """Return what both routes say of one decision, whichever engine answered."""
    return {
        "id": scores.decision_id,
        "option_ids": list(scores.option_ids),
        "probabilities": list(scores.probabilities),
        "option_logits": list(scores.option_logits),
        "support": scores.support,
        "input_tokens": scores.input_tokens,
        "prompt_sha256": scores.prompt_sha256,
        "prompt_version": engine.prompt_version(len(scores.option_ids)),
        "probability_status": engine.probability_status,
        "engine": engine.name,
        "calibrated": _calibrated(scores, table, body.workload),
        "diagnostics": _diagnostics(scores, engine) if body.diagnostics else None,
    }


def to_calibration(table: CalibrationTable) -> dict[str, WorkloadCalibration]:
    """Return what /health tells of each workload, in alphabetical order."""
    rendered = {}
    for workload in table.workloads:
        fitted = table.provenances.get(workload)
        rendered[workload] = WorkloadCalibration(
            temperature=table.temperatures[workload],
            provenance=Provenance(**asdict(fitted)) if fitted else None,
        )
    return rendered


def _decision(body: DecideRequest | DecisionBody) -> Decision:
    options = tuple(Option(option.id, option.description, option.label) for option in body.options)
    return Decision(body.id, body.question, options)


def _calibrated(scores: Scores, table: CalibrationTable, workload: str | None) -> Calibrated | None:
    """Return the calibrated view beside a decision's native answer; None when none was asked for.

    Raises:
        InvalidRequest: the table does not hold `workload`.
    """
    if workload is None:
        return None
    view = table.view(workload, scores.option_logits)
    return Calibrated(
        workload=view.workload,
        temperature=view.temperature,
        probabilities=list(view.probabilities),
    )


def _diagnostics(scores: Scores, engine: Engine) -> Diagnostics:
    pairs = scores.pair_logits
    return Diagnostics(
        letter_mass=scores.letter_mass,
        margin=margin(scores.probabilities),
        near_tie=is_near_tie(scores.option_logits, engine.identity.dtype),
        pair_logits=[list(row) for row in pairs] if pairs else None,
    )
