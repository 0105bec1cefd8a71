"""Turns answers into System One's; pure functions that know nothing of HTTP or queues."""

from typing import Any

from semif_bento.api import confidence
from semif_bento.api.catalogue import Catalogue
from semif_bento.api.systemone.results import (
    Answer,
    CalibratedAnswer,
    ChoiceAnswer,
    ModelList,
    ModelMetadata,
    NoulAnswer,
    ScoreAnswer,
)
from semif_bento.api.systemone.schema import Choice, Noul, Question, Score
from semif_bento.api.typed import Answered, Evidence
from semif_bento.questions import TRUE


def to_answer(question: Question, answered: Answered) -> Answer:
    """Return the answer to a question, as it was sent."""
    shares, evidence = answered.probabilities, _told(answered.evidence)
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


def to_model_list(catalogue: Catalogue) -> ModelList:
    """Return the answer of GET /v1/models: every model under every name, its own first."""
    return ModelList(
        models=[
            ModelMetadata(
                name=name, description=model.description, release_date=catalogue.since.isoformat()
            )
            for model in catalogue.models
            for name in model.names
        ]
    )


def _told(evidence: Evidence | None) -> dict[str, Any]:
    """Return what an answer tells beyond the service's own keys."""
    if evidence is None:
        return {"trivial": True}
    view = evidence.calibrated
    calibrated = view and CalibratedAnswer(
        workload=view.workload,
        temperature=view.temperature,
        probabilities=view.by_option(evidence.option_ids),
    )
    return {
        "margin": evidence.margin,
        "near_tie": evidence.near_tie,
        "prompt_sha256": evidence.prompt_sha256,
        "prompt_version": evidence.prompt_version,
        "engine": evidence.engine,
        "letter_mass": evidence.letter_mass,
        "support": evidence.support,
        "pair_logits": evidence.pair_logits,
        "calibrated": calibrated,
    }
