"""Turns checked bodies into the engine's requests, and its outcomes into response bodies.

Pure functions; knows nothing of HTTP, queues or where a scorer runs.
"""

from dataclasses import asdict

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
    ModelIdentity,
    Option,
    ScoreRequest,
    Scores,
    SharedOutcome,
)
from semif_bento.protocol import (
    DIRECT_READOUT,
    PROBABILITY_STATUS,
    PROMPT_VERSION,
    SHARED_READOUT,
    is_near_tie,
    margin,
)


def to_direct_request(body: DecideRequest) -> ScoreRequest:
    """Return the engine's request for POST /decide."""
    return ScoreRequest(body.state, (_decision(body),), body.diagnostics)


def to_shared_request(body: SharedRequest) -> ScoreRequest:
    """Return the engine's request for POST /decide/shared."""
    return ScoreRequest(body.state, tuple(map(_decision, body.decisions)), body.diagnostics)


def to_direct_result(
    outcome: DirectOutcome, model: ModelIdentity, table: CalibrationTable, workload: str | None
) -> DecisionResult:
    """Return the body that answers POST /decide.

    Raises:
        InvalidRequest: the table does not hold `workload`.
    """
    scores = outcome.scores
    return DecisionResult(
        id=scores.decision_id,
        option_ids=list(scores.option_ids),
        probabilities=list(scores.probabilities),
        option_logits=list(scores.option_logits),
        input_tokens=scores.input_tokens,
        forward_seconds=outcome.forward_seconds,
        total_seconds=outcome.total_seconds,
        prompt_sha256=scores.prompt_sha256,
        prompt_version=PROMPT_VERSION,
        model=Model(**asdict(model)),
        readout=outcome.readout or DIRECT_READOUT,
        probability_status=PROBABILITY_STATUS,
        calibrated=to_calibrated(scores, table, workload),
        diagnostics=_diagnostics(scores, model.dtype),
    )


def to_shared_response(
    outcome: SharedOutcome, model: ModelIdentity, table: CalibrationTable, workload: str | None
) -> SharedResponse:
    """Return the body that answers POST /decide/shared, in request order.

    Raises:
        InvalidRequest: the table does not hold `workload`.
    """
    shared_model = SharedModel(**asdict(model), serving_config=outcome.serving_config)
    results = [
        SharedDecisionResult(
            id=scores.decision_id,
            option_ids=list(scores.option_ids),
            probabilities=list(scores.probabilities),
            option_logits=list(scores.option_logits),
            input_tokens=scores.input_tokens,
            prompt_sha256=scores.prompt_sha256,
            prompt_version=PROMPT_VERSION,
            model=shared_model,
            readout=outcome.readout or SHARED_READOUT,
            probability_status=PROBABILITY_STATUS,
            calibrated=to_calibrated(scores, table, workload),
            diagnostics=_diagnostics(scores, model.dtype),
        )
        for scores in outcome.scores
    ]
    return SharedResponse(results=results, timing=Timing(**asdict(outcome.timing)))


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
    options = tuple(Option(option.id, option.description) for option in body.options)
    return Decision(body.id, body.question, options)


def to_calibrated(
    scores: Scores, table: CalibrationTable, workload: str | None
) -> Calibrated | None:
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


def _diagnostics(scores: Scores, dtype: str) -> Diagnostics | None:
    if scores.letter_mass is None:
        return None
    return Diagnostics(
        letter_mass=scores.letter_mass,
        margin=margin(scores.probabilities),
        near_tie=is_near_tie(scores.option_logits, dtype),
    )
