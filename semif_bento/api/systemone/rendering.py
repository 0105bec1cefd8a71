"""Turns scores into System One's answers; pure functions that know nothing of HTTP or queues."""

from collections.abc import Mapping
from typing import Any

from semif_bento.api.nli.answers import Verdict
from semif_bento.api.systemone import confidence
from semif_bento.api.systemone.questions import TRUE
from semif_bento.api.systemone.results import (
    Answer,
    CalibratedAnswer,
    ChoiceAnswer,
    NoulAnswer,
    ScoreAnswer,
)
from semif_bento.api.systemone.schema import Choice, Noul, Question, Score
from semif_bento.calibration import CalibrationTable
from semif_bento.decisions import Scores
from semif_bento.entailment import Classifier
from semif_bento.entailment import prompt_version as nli_prompt_version
from semif_bento.protocol import PROMPT_VERSION, is_near_tie, margin, prompt_version


def to_answer(question: Question, probabilities: Mapping[str, float], **evidence: Any) -> Answer:
    """Return the answer to a question.

    Args:
        question: as it was sent.
        probabilities: by option, in the question's order; their sum is 1.
        evidence: fields of `Evidence`.
    """
    shares = dict(probabilities)
    match question:
        case Noul():
            return NoulAnswer(noul=shares[TRUE], **evidence)
        case Choice():
            return ChoiceAnswer(
                choice=max(shares, key=lambda name: shares[name]),
                confidence=confidence.choice_confidence(list(shares.values())),
                probabilities=shares,
                **evidence,
            )
        case Score():
            levels = list(shares.values())
            return ScoreAnswer(
                score=sum(level * share for level, share in enumerate(levels)),
                confidence=confidence.score_confidence(levels),
                legend={str(level): text for level, text in enumerate(question.criteria)},
                probabilities=shares,
                **evidence,
            )


def to_evidence(
    scores: Scores, dtype: str, table: CalibrationTable, workload: str | None
) -> dict[str, Any]:
    """Return what an answer by option letters tells beyond the service's own keys.

    A temperature is fitted on one version of the prompt, so a wide prompt gets no calibrated view.

    Raises:
        InvalidRequest: the table does not hold `workload`.
    """
    version = prompt_version(len(scores.option_ids))
    if version != PROMPT_VERSION:
        workload = None
    return {
        "margin": margin(scores.probabilities),
        "near_tie": is_near_tie(scores.option_logits, dtype),
        "prompt_sha256": scores.prompt_sha256,
        "prompt_version": version,
        "letter_mass": scores.letter_mass,
        "calibrated": _calibrated(scores, table, workload) if workload else None,
    }


def to_nli_evidence(
    verdict: Verdict,
    classifier: Classifier,
    table: CalibrationTable,
    workload: str | None,
    *,
    diagnostics: bool,
) -> dict[str, Any]:
    """Return what an answer by entailment tells beyond the service's own keys.

    Raises:
        InvalidRequest: the table does not hold `workload`.
    """
    scores = verdict.scores
    logits = (list(row.logits) for row in verdict.rows)
    return {
        "pair_logits": dict(zip(scores.option_ids, logits, strict=True)) if diagnostics else None,
        "margin": margin(scores.probabilities),
        "near_tie": is_near_tie(scores.option_logits, classifier.identity.dtype),
        "prompt_sha256": scores.prompt_sha256,
        "prompt_version": nli_prompt_version(classifier.template),
        "support": verdict.support,
        "calibrated": _calibrated(scores, table, workload) if workload else None,
    }


def by_option(scores: Scores) -> dict[str, float]:
    """Return the native probabilities by option, in order.

    Raises:
        ValueError: their numbers differ.
    """
    return dict(zip(scores.option_ids, scores.probabilities, strict=True))


def _calibrated(scores: Scores, table: CalibrationTable, workload: str) -> CalibratedAnswer:
    view = table.view(workload, scores.option_logits)
    return CalibratedAnswer(
        workload=view.workload,
        temperature=view.temperature,
        probabilities=dict(zip(scores.option_ids, view.probabilities, strict=True)),
    )
