"""Turns checked bodies into the engine's requests, and its outcomes into response bodies.

Pure functions; knows nothing of HTTP, queues or where a scorer runs.
"""

from dataclasses import asdict

from semif_bento.api.results import (
    Calibrated,
    DecisionResult,
    Diagnostics,
    Model,
    SharedDecisionResult,
    SharedModel,
    SharedResponse,
    Timing,
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
    NEAR_TIE_LOGITS,
    PROBABILITY_STATUS,
    PROMPT_VERSION,
    SHARED_READOUT,
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
        readout=DIRECT_READOUT,
        probability_status=PROBABILITY_STATUS,
        calibrated=_calibrated(scores, table, workload),
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
            readout=SHARED_READOUT,
            probability_status=PROBABILITY_STATUS,
            calibrated=_calibrated(scores, table, workload),
            diagnostics=_diagnostics(scores, model.dtype),
        )
        for scores in outcome.scores
    ]
    return SharedResponse(results=results, timing=Timing(**asdict(outcome.timing)))


def _decision(body: DecideRequest | DecisionBody) -> Decision:
    options = tuple(Option(option.id, option.description) for option in body.options)
    return Decision(body.id, body.question, options)


def _calibrated(scores: Scores, table: CalibrationTable, workload: str | None) -> Calibrated | None:
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
    first, second = sorted(scores.probabilities, reverse=True)[:2]
    top, next_best = sorted(scores.option_logits, reverse=True)[:2]
    return Diagnostics(
        letter_mass=scores.letter_mass,
        margin=first - second,
        near_tie=top - next_best <= NEAR_TIE_LOGITS[dtype],
    )
