"""What System One's routes do, from checked body to response body; knows nothing of BentoML."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from semif_bento.api.systemone import rendering
from semif_bento.api.systemone.models import Catalogue, letter_model
from semif_bento.api.systemone.questions import to_decision
from semif_bento.api.systemone.results import Answer, ModelList, SystemOneResponse, Usage
from semif_bento.api.systemone.schema import Question, SystemOneRequest, Text
from semif_bento.calibration import CalibrationTable
from semif_bento.decisions import Decision, ScoreRequest, Scores
from semif_bento.errors import InvalidRequest, ScoringFailed, UsageError
from semif_bento.serving import failures, metrics
from semif_bento.serving.desk import Desk

log = logging.getLogger(__name__)

WORKLOAD, DIAGNOSTICS = "x-semif-workload", "x-semif-diagnostics"
"""Headers that ask for more: the body is the service's own and takes no other keys."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a request asks for beside its answers."""

    workload: str | None = None
    diagnostics: bool = False

    @classmethod
    def of(cls, headers: Mapping[str, str], table: CalibrationTable) -> "Wishes":
        """Read the headers.

        Raises:
            UsageError: an unknown workload, or diagnostics that are neither true nor false.
        """
        diagnostics = headers.get(DIAGNOSTICS, "false")
        if diagnostics not in ("true", "false"):
            raise UsageError(f"{DIAGNOSTICS} must be true or false.")
        workload = headers.get(WORKLOAD)
        try:
            table.require(workload)
        except InvalidRequest as error:
            raise UsageError(error.message) from None
        return cls(workload, diagnostics == "true")


class SystemOne:
    """The routes over one desk.

    Args:
        catalogue: the models that a request may name.
        table: temperatures by workload.
        desk: open, so that its scorer is loaded.
    """

    def __init__(self, catalogue: Catalogue, table: CalibrationTable, desk: Desk) -> None:
        self._catalogue = catalogue
        self._table = table
        self._desk = desk

    @classmethod
    def over(cls, desk: Desk, table: CalibrationTable, aliases: Sequence[str]) -> "SystemOne":
        """Return the routes over a desk's own model, which also goes by the operator's aliases."""
        scorer = desk.backend.require_letter()
        model = letter_model(scorer.identity, scorer.wide_slot_count, aliases)
        return cls(Catalogue((model,), datetime.now(UTC).date()), table, desk)

    def models(self) -> ModelList:
        """Answer GET /v1/models."""
        return self._catalogue.as_list()

    async def answer(
        self, body: SystemOneRequest, headers: Mapping[str, str], arrived_s: float
    ) -> SystemOneResponse:
        """Answer POST /v1/systemone.

        All questions are scored in one call over one reading of the state, in passes of up to
        SEMIF_MAX_DECISIONS; those with one option only are answered without the model.

        Raises:
            UsageError: an unknown model or workload, or a question that cannot be asked.
            RequestError: as `Desk.run` and the scorer raise it.
        """
        model = self._catalogue.find(body.model)
        wishes = Wishes.of(headers, self._table)
        decisions = {
            question_id: to_decision(question_id, question, model.max_choices)
            for question_id, question in body.questions.items()
        }
        found, tokens = await self._score(body.state, decisions, wishes.diagnostics, arrived_s)
        try:
            answers = {
                question_id: self._answer(question, decisions[question_id], found, wishes)
                for question_id, question in body.questions.items()
            }
        except ValueError as error:  # pydantic's among them: a number out of its range
            log.error("Scoring failed: %s", failures.describe(error))
            raise ScoringFailed("The scorer gave numbers that are no probabilities.") from None
        usage = Usage(input_tokens=tokens, output_tokens=0)
        return SystemOneResponse(model=model.name, answers=answers, usage=usage)

    async def _score(
        self, state: Text, decisions: Mapping[str, Decision], diagnostics: bool, arrived_s: float
    ) -> tuple[dict[str, Scores], int]:
        """Return the scores of every decision that has a choice to make, and the tokens read."""
        asked = tuple(decision for decision in decisions.values() if len(decision.options) > 1)
        if not asked:
            return {}, 0
        request = ScoreRequest(state, asked, diagnostics)
        scorer = self._desk.backend.require_letter()
        outcome = await self._desk.run(
            "shared", lambda caller: scorer.shared(request, caller), arrived_s
        )
        # Clients do not notice a missing answer, so this does.
        if [scores.decision_id for scores in outcome.scores] != [one.id for one in asked]:
            raise ScoringFailed("The scorer did not answer every decision.")
        tokens = outcome.timing.prefix_tokens + outcome.timing.true_suffix_tokens
        metrics.INPUT_TOKENS.labels("shared").inc(tokens)
        return {scores.decision_id: scores for scores in outcome.scores}, tokens

    def _answer(
        self, question: Question, decision: Decision, found: dict[str, Scores], wishes: Wishes
    ) -> Answer:
        if len(decision.options) == 1:
            return rendering.to_answer(question, {decision.options[0].id: 1.0}, trivial=True)
        scores = found[decision.id]
        evidence = rendering.to_evidence(
            scores, self._desk.backend.identity.dtype, self._table, wishes.workload
        )
        return rendering.to_answer(question, rendering.by_option(scores), **evidence)
