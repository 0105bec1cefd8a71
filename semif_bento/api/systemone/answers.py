"""What System One's routes do, from checked body to response body; knows nothing of BentoML."""

import logging
from collections.abc import Mapping

from semif_bento.api.catalogue import Catalogue, ServedModel
from semif_bento.api.systemone import rendering
from semif_bento.api.systemone.questions import to_question
from semif_bento.api.systemone.results import SystemOneResponse, Usage
from semif_bento.api.systemone.schema import SystemOneRequest
from semif_bento.api.typed import TypedAsker, Wishes
from semif_bento.errors import InvalidRequest, ScoringFailed, UsageError
from semif_bento.serving import failures

log = logging.getLogger(__name__)


class SystemOne:
    """The route over every engine.

    Args:
        catalogue: the models that a request may name.
        asker: asks the engine that a model belongs to.
    """

    def __init__(self, catalogue: Catalogue, asker: TypedAsker) -> None:
        self._catalogue = catalogue
        self._asker = asker

    async def answer(
        self, body: SystemOneRequest, headers: Mapping[str, str], arrived_s: float
    ) -> SystemOneResponse:
        """Answer POST /v1/systemone.

        All questions are scored in one call over one reading of the state, in passes of up to
        SEMIF_MAX_DECISIONS; those with one option only are answered without the model.

        Raises:
            UsageError: an unknown model or workload, or a question that cannot be asked.
            RequestError: as `TypedAsker.ask` raises it.
        """
        model = self._catalogue.find(body.model)
        wishes = self._wishes(model, headers)
        questions = [
            to_question(question_id, question, model.max_choices)
            for question_id, question in body.questions.items()
        ]
        try:
            asked = await self._asker.ask(model, body.state, questions, wishes, arrived_s)
            answers = {
                question_id: rendering.to_answer(question, asked.answers[question_id])
                for question_id, question in body.questions.items()
            }
        except ValueError as error:  # pydantic's among them: a number out of its range
            log.error("Scoring failed: %s", failures.describe(error))
            raise ScoringFailed("The scorer gave numbers that are no probabilities.") from None
        usage = Usage(input_tokens=asked.input_tokens, output_tokens=0)
        return SystemOneResponse(model=model.name, answers=answers, usage=usage)

    def _wishes(self, model: ServedModel, headers: Mapping[str, str]) -> Wishes:
        try:
            return self._asker.wishes(model, headers)
        except InvalidRequest as error:
            raise UsageError(error.message) from None
