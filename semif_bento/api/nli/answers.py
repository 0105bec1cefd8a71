"""What the NLI engine's routes do, from checked body to response body; knows nothing of torch."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from semif_bento.api import rendering as shared_rendering
from semif_bento.api.nli import rendering
from semif_bento.api.nli.results import ClassifyResponse, Embedding, Embeddings
from semif_bento.api.nli.schema import ClassifyRequest
from semif_bento.api.results import (
    DecisionResult,
    Diagnostics,
    Model,
    NliHealth,
    SharedDecisionResult,
    SharedResponse,
    Timing,
)
from semif_bento.api.schema import DecideRequest, SharedRequest
from semif_bento.calibration import CalibrationTable
from semif_bento.decisions import Decision, JsonState, Scores
from semif_bento.entailment import (
    LABELS,
    NLI_PROBABILITY_STATUS,
    NLI_READOUT,
    Claim,
    Classifier,
    ClassifyOutcome,
    ClassifyTiming,
    Pair,
    PairLogits,
    Rendered,
    Tokens,
    prompt_version,
    render_premise,
)
from semif_bento.errors import PromptTooLong, ScoringFailed
from semif_bento.protocol import is_near_tie, margin
from semif_bento.serving import metrics
from semif_bento.serving.scheduler import Scheduler
from semif_bento.settings import Settings


@dataclass(frozen=True, slots=True)
class Question:
    """A decision as an NLI model is asked: a question, and the claims that answer it."""

    id: str
    text: str
    claims: tuple[Claim, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """One decision's answer: scores as of any engine, support, and each pair's own logits."""

    scores: Scores
    support: float
    rows: tuple[PairLogits, ...]


class NliAnswers:
    """The routes over one scheduler.

    Args:
        settings: limits.
        table: temperatures by workload, of this engine.
        scheduler: open; its backend may lack the engine, which every route but this one's own says.
    """

    def __init__(self, settings: Settings, table: CalibrationTable, scheduler: Scheduler) -> None:
        self._settings = settings
        self.table = table
        self._scheduler = scheduler

    async def classify(
        self, body: ClassifyRequest, arrived_s: float
    ) -> ClassifyResponse | Embedding | Embeddings:
        """Answer POST /classify.

        Raises:
            NotFound: the NLI engine is not loaded.
            InvalidRequest: too many pairs, or as the classifier raises it.
            RequestError: as `Scheduler.run` raises it.
        """
        classifier = self._scheduler.backend.require_nli()
        self._refuse_many(body.size())
        outcome = await self._run(classifier, rendering.to_inputs(body), arrived_s)
        return rendering.to_response(body, outcome, classifier)

    async def decide(self, body: DecideRequest, arrived_s: float) -> DecisionResult:
        """Answer POST /decide with engine nli.

        Raises:
            NotFound: the NLI engine is not loaded.
            InvalidRequest: unknown workload, or as the classifier raises it.
            RequestError: as `Scheduler.run` raises it.
        """
        classifier = self._scheduler.backend.require_nli()
        self.table.require(body.workload)
        decision = shared_rendering.to_direct_request(body).decisions[0]
        (verdict,), timing = await self.judge(body.state, [to_question(decision)], arrived_s)
        scores = verdict.scores
        return DecisionResult(
            id=scores.decision_id,
            option_ids=list(scores.option_ids),
            probabilities=list(scores.probabilities),
            option_logits=list(scores.option_logits),
            support=verdict.support,
            input_tokens=scores.input_tokens,
            forward_seconds=timing.prefill_seconds + timing.forward_seconds,
            total_seconds=timing.total_seconds,
            prompt_sha256=scores.prompt_sha256,
            prompt_version=prompt_version(classifier.template),
            model=Model(**asdict(classifier.identity)),
            readout=NLI_READOUT,
            probability_status=NLI_PROBABILITY_STATUS,
            calibrated=shared_rendering.to_calibrated(scores, self.table, body.workload),
            diagnostics=self._diagnose(verdict) if body.diagnostics else None,
        )

    async def decide_shared(self, body: SharedRequest, arrived_s: float) -> SharedResponse:
        """Answer POST /decide/shared with engine nli, whose limits the caller has checked.

        Raises:
            NotFound: the NLI engine is not loaded.
            InvalidRequest: unknown workload, or as the classifier raises it.
            RequestError: as `Scheduler.run` raises it.
        """
        classifier = self._scheduler.backend.require_nli()
        self.table.require(body.workload)
        decisions = shared_rendering.to_shared_request(body).decisions
        questions = [to_question(decision) for decision in decisions]
        verdicts, timing = await self.judge(body.state, questions, arrived_s)
        model = rendering.to_model(classifier)
        version = prompt_version(classifier.template)
        results = [
            SharedDecisionResult(
                id=verdict.scores.decision_id,
                option_ids=list(verdict.scores.option_ids),
                probabilities=list(verdict.scores.probabilities),
                option_logits=list(verdict.scores.option_logits),
                support=verdict.support,
                input_tokens=verdict.scores.input_tokens,
                prompt_sha256=verdict.scores.prompt_sha256,
                prompt_version=version,
                model=model,
                readout=NLI_READOUT,
                probability_status=NLI_PROBABILITY_STATUS,
                calibrated=shared_rendering.to_calibrated(
                    verdict.scores, self.table, body.workload
                ),
                diagnostics=self._diagnose(verdict) if body.diagnostics else None,
            )
            for verdict in verdicts
        ]
        return SharedResponse(results=results, timing=_to_timing(timing, len(questions)))

    async def judge(
        self, state: JsonState, questions: Sequence[Question], arrived_s: float
    ) -> tuple[list[Verdict], ClassifyTiming]:
        """Return what entailment says of each question about a state, all in one call.

        Raises:
            NotFound: the NLI engine is not loaded.
            PromptTooLong: all options together are over the limit of pairs.
            ScoringFailed: the classifier did not answer every pair.
            RequestError: as `Scheduler.run` and the classifier raise it.
        """
        classifier = self._scheduler.backend.require_nli()
        self._refuse_many(sum(len(one.claims) for one in questions))
        premise = render_premise(state)  # once: a state may be long, and the questions many
        pairs = [rendering.to_pairs(premise, one.text, one.claims) for one in questions]
        outcome = await self._run(classifier, [pair for each in pairs for pair in each], arrived_s)
        verdicts, start = [], 0
        for question, own in zip(questions, pairs, strict=True):
            rows = outcome.rows[start : start + len(own)]
            start += len(own)
            scores, support = rendering.to_scores(
                question.id, question.claims, own, rows, classifier.template
            )
            verdicts.append(Verdict(scores, support, rows))
        return verdicts, outcome.timing

    def health(self) -> NliHealth | None:
        """Return what /health tells of the engine; None where it is not loaded."""
        classifier = self._scheduler.backend.nli
        if classifier is None:
            return None
        return NliHealth(
            model=classifier.identity.source,
            revision=classifier.identity.revision,
            dtype=classifier.identity.dtype,
            labels=list(LABELS),
            template=classifier.template,
            prompt_version=prompt_version(classifier.template),
            max_pairs=self._settings.max_pairs,
            workloads=self.table.workloads,
            calibration=shared_rendering.to_calibration(self.table),
        )

    def _refuse_many(self, asked: int) -> None:
        limit = self._settings.max_pairs
        if asked > limit:
            raise PromptTooLong(f"The request makes {asked} pairs; at most {limit} are taken.")

    async def _run(
        self,
        classifier: Classifier,
        inputs: Sequence[Pair | Rendered | Tokens],
        arrived_s: float,
    ) -> ClassifyOutcome:
        outcome = await self._scheduler.run(
            "classify", lambda caller: classifier.classify(inputs, caller), arrived_s
        )
        if len(outcome.rows) != len(inputs):
            raise ScoringFailed("The classifier did not answer every input.")
        timing = outcome.timing
        tokens = timing.prefix_tokens + timing.suffix_tokens
        metrics.INPUT_TOKENS.labels("classify").inc(tokens)
        return outcome

    def _diagnose(self, verdict: Verdict) -> Diagnostics:
        scores = verdict.scores
        dtype = self._scheduler.backend.require_nli().identity.dtype
        return Diagnostics(
            margin=margin(scores.probabilities),
            near_tie=is_near_tie(scores.option_logits, dtype),
            pair_logits=[list(row.logits) for row in verdict.rows],
        )


def to_question(decision: Decision) -> Question:
    """Return a native decision as an NLI model is asked."""
    return Question(decision.id, decision.question, rendering.to_claims(decision))


def _to_timing(timing: ClassifyTiming, decisions: int) -> Timing:
    return Timing(
        total_seconds=timing.total_seconds,
        encode_seconds=timing.encode_seconds,
        prefix_tokens=timing.prefix_tokens,
        prefill_seconds=timing.prefill_seconds,
        replicate_seconds=0.0,  # branches read the prefix where it lies
        suffix_forward_seconds=timing.forward_seconds,
        batch_size=decisions,
        true_suffix_tokens=timing.suffix_tokens,
        padded_suffix_tokens=timing.padded_tokens,
        branch_groups=timing.groups,
        cache_hit=0 < timing.prefix_tokens == timing.cached_tokens,
    )
