"""What System One's routes do, from checked body to response body; knows nothing of BentoML."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from semif_bento.api.nli.answers import NliAnswers
from semif_bento.api.nli.answers import Question as NliQuestion
from semif_bento.api.systemone import rendering
from semif_bento.api.systemone.models import Catalogue, served_models
from semif_bento.api.systemone.questions import to_claims, to_decision, to_text
from semif_bento.api.systemone.results import Answer, ModelList, SystemOneResponse, Usage
from semif_bento.api.systemone.schema import Question, SystemOneRequest, Text
from semif_bento.calibration import CalibrationTable
from semif_bento.decisions import Decision, ScoreRequest, Scores
from semif_bento.errors import InvalidRequest, ScoringFailed, UsageError
from semif_bento.serving import failures, metrics
from semif_bento.serving.scheduler import Scheduler

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


@dataclass(frozen=True, slots=True)
class Found:
    """What an engine found out about a decision, and fields of `Evidence` that go with it."""

    scores: Scores
    evidence: dict[str, Any]


class SystemOne:
    """The routes over one scheduler.

    Args:
        catalogue: the models that a request may name.
        table: the letter engine's temperatures by workload.
        scheduler: open, so that its engines are loaded.
        nli: asks the NLI engine.
    """

    def __init__(
        self, catalogue: Catalogue, table: CalibrationTable, scheduler: Scheduler, nli: NliAnswers
    ) -> None:
        self._catalogue = catalogue
        self._table = table
        self._scheduler = scheduler
        self._nli = nli

    @classmethod
    def over(
        cls, scheduler: Scheduler, table: CalibrationTable, aliases: Sequence[str], nli: NliAnswers
    ) -> "SystemOne":
        """Return the routes over a scheduler's own models; aliases go to the first of them."""
        models = served_models(scheduler.backend, aliases)
        return cls(Catalogue(models, datetime.now(UTC).date()), table, scheduler, nli)

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
            RequestError: as `Scheduler.run` and the scorer raise it.
        """
        model = self._catalogue.find(body.model)
        is_nli = model.engine == "nli"
        wishes = Wishes.of(headers, self._nli.table if is_nli else self._table)
        decisions = {
            question_id: to_decision(question_id, question, model.max_choices)
            for question_id, question in body.questions.items()
        }
        asked = [decision for decision in decisions.values() if len(decision.options) > 1]
        found: dict[str, Found] = {}
        tokens = 0
        if asked and is_nli:
            found, tokens = await self._judge(body, asked, wishes, arrived_s)
        elif asked:
            found, tokens = await self._score(body.state, asked, wishes, arrived_s)
        try:
            answers = {
                question_id: _answer(question, decisions[question_id], found)
                for question_id, question in body.questions.items()
            }
        except ValueError as error:  # pydantic's among them: a number out of its range
            log.error("Scoring failed: %s", failures.describe(error))
            raise ScoringFailed("The scorer gave numbers that are no probabilities.") from None
        usage = Usage(input_tokens=tokens, output_tokens=0)
        return SystemOneResponse(model=model.name, answers=answers, usage=usage)

    async def _score(
        self, state: Text, asked: Sequence[Decision], wishes: Wishes, arrived_s: float
    ) -> tuple[dict[str, Found], int]:
        """Return what option letters say of every decision, and the tokens read."""
        request = ScoreRequest(state, tuple(asked), wishes.diagnostics)
        scorer = self._scheduler.backend.require_letter()
        outcome = await self._scheduler.run(
            "shared", lambda caller: scorer.shared(request, caller), arrived_s
        )
        # Clients do not notice a missing answer, so this does.
        if [scores.decision_id for scores in outcome.scores] != [one.id for one in asked]:
            raise ScoringFailed("The scorer did not answer every decision.")
        tokens = outcome.timing.prefix_tokens + outcome.timing.true_suffix_tokens
        metrics.INPUT_TOKENS.labels("shared").inc(tokens)
        dtype = scorer.identity.dtype
        return {
            scores.decision_id: Found(
                scores, rendering.to_evidence(scores, dtype, self._table, wishes.workload)
            )
            for scores in outcome.scores
        }, tokens

    async def _judge(
        self,
        body: SystemOneRequest,
        asked: Sequence[Decision],
        wishes: Wishes,
        arrived_s: float,
    ) -> tuple[dict[str, Found], int]:
        """Return what entailment says of every decision, and the tokens read."""
        questions = [
            NliQuestion(
                decision.id,
                to_text(body.questions[decision.id].instructions),
                to_claims(body.questions[decision.id], decision),
            )
            for decision in asked
        ]
        verdicts, timing = await self._nli.judge(body.state, questions, arrived_s)
        classifier = self._scheduler.backend.require_nli()
        found = {
            verdict.scores.decision_id: Found(
                verdict.scores,
                rendering.to_nli_evidence(
                    verdict,
                    classifier,
                    self._nli.table,
                    wishes.workload,
                    diagnostics=wishes.diagnostics,
                ),
            )
            for verdict in verdicts
        }
        return found, timing.prefix_tokens + timing.suffix_tokens


def _answer(question: Question, decision: Decision, found: Mapping[str, Found]) -> Answer:
    if len(decision.options) == 1:
        return rendering.to_answer(question, {decision.options[0].id: 1.0}, trivial=True)
    one = found[decision.id]
    return rendering.to_answer(question, rendering.by_option(one.scores), **one.evidence)
