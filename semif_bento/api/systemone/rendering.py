"""Turns answers into System One's; pure functions that know nothing of HTTP or queues."""

from semif_bento.api import confidence
from semif_bento.api.systemone.results import (
    Answer,
    ChoiceAnswer,
    NoulAnswer,
    ScoreAnswer,
)
from semif_bento.api.systemone.schema import Choice, Noul, Question, Score
from semif_bento.api.typed import Answered, told
from semif_bento.questions import TRUE


def to_answer(question: Question, answered: Answered) -> Answer:
    """Return the answer to a question, as it was sent."""
    shares, evidence = answered.probabilities, told(answered.evidence)
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
