"""What POST /v1/decisions does, from checked body to response body; knows nothing of HTTP."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from semif_bento.api.catalogue import Catalogue
from semif_bento.api.confidence import choice_confidence, score_confidence
from semif_bento.api.decisions.items import to_state
from semif_bento.api.decisions.questions import to_question
from semif_bento.api.decisions.results import (
    Answer,
    ChoiceAnswer,
    ChoiceProbability,
    DecisionsResponse,
    InputTokensDetails,
    LevelProbability,
    OutputTokensDetails,
    PredicateAnswer,
    ScoreAnswer,
    Usage,
)
from semif_bento.api.decisions.schema import Choice, DecisionsRequest, Predicate, Question, Score
from semif_bento.api.typed import Answered, Asked, TypedAsker, told
from semif_bento.errors import InvalidParameter, ScoringFailed
from semif_bento.questions import Question as TypedQuestion
from semif_bento.serving import failures

log = logging.getLogger(__name__)

OURS = "x_"
"""Begins the name of every key of ours in an answer."""


class Decisions:
    """The route over every engine.

    Args:
        catalogue: the models that a request may name.
        asker: asks the engine that a model belongs to.
    """

    def __init__(self, catalogue: Catalogue, asker: TypedAsker) -> None:
        self._catalogue = catalogue
        self._asker = asker

    async def answer(
        self, body: DecisionsRequest, headers: Mapping[str, str], arrived_s: float
    ) -> DecisionsResponse:
        """Answer POST /v1/decisions.

        Raises:
            UnknownModel: nothing that is served goes by the name.
            InvalidRequest: a header asks for what cannot be, or a question has too many choices.
            RequestError: as `TypedAsker.ask` raises it.
        """
        model = self._catalogue.find(body.model)
        wishes = self._asker.wishes(model, headers)
        questions = [to_question(index, one) for index, one in enumerate(body.questions)]
        _refuse_many_choices(questions, model.max_choices)
        try:
            asked = await self._asker.ask(model, to_state(body.input), questions, wishes, arrived_s)
            answers = [
                to_answer(question, asked.answers[str(index)])
                for index, question in enumerate(body.questions)
            ]
        except (KeyError, ValueError) as error:  # pydantic's among them: a number out of its range
            log.error("Scoring failed: %s", failures.describe(error))
            raise ScoringFailed("The scorer gave numbers that are no probabilities.") from None
        return DecisionsResponse(model=model.name, answers=answers, usage=_usage(asked))


def _refuse_many_choices(questions: Sequence[TypedQuestion], most: int) -> None:
    for index, question in enumerate(questions):
        if len(question.options) > most:
            raise InvalidParameter(
                f"At most {most} choices are taken by this model.",
                param=f"questions[{index}].choices",
                kind="too_many_choices",
            )


def to_answer(question: Question, answered: Answered) -> Answer:
    """Return the answer to a question.

    Raises:
        ValueError: the probabilities are not as many as the options, or none at all.
    """
    shares = tuple(answered.probabilities.values())
    rest: dict[str, Any] = {
        "name": question.given_name,
        **{OURS + key: value for key, value in told(answered.evidence).items()},
    }
    match question:
        case Predicate():
            probability, _ = shares
            return PredicateAnswer(probability=probability, **rest)
        case Choice(choices=choices):
            rows = [
                ChoiceProbability(value=option.value, probability=share)
                for option, share in zip(choices, shares, strict=True)
            ]
            return ChoiceAnswer(
                choice=max(rows, key=lambda row: row.probability).value,
                confidence=choice_confidence(shares),
                probabilities=rows,
                **rest,
            )
        case Score(levels=levels):
            return ScoreAnswer(
                score=sum(level * share for level, share in enumerate(shares)),
                confidence=score_confidence(shares),
                probabilities=[
                    LevelProbability(value=index, label=level.label, probability=share)
                    for index, (level, share) in enumerate(zip(levels, shares, strict=True))
                ],
                **rest,
            )


def _usage(asked: Asked) -> Usage:
    return Usage(
        input_tokens=asked.input_tokens,
        input_tokens_details=InputTokensDetails(
            cached_tokens=asked.cached_tokens, cache_write_tokens=0
        ),
        output_tokens=0,
        output_tokens_details=OutputTokensDetails(reasoning_tokens=0),
        total_tokens=asked.input_tokens,
    )
