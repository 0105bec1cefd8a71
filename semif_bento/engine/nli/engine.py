"""Decisions by entailment: pairs of a state and what each option claims, over any classifier.

Knows nothing of HTTP, or of where a classifier runs.
"""

from collections.abc import Sequence

from semif_bento.caller import Caller
from semif_bento.decisions import (
    Decision,
    DirectOutcome,
    EngineStatus,
    JsonState,
    Option,
    ScoreRequest,
    Scores,
    SharedOutcome,
    SharedTiming,
)
from semif_bento.entailment import (
    NLI_PROBABILITY_STATUS,
    NLI_READOUT,
    Classifier,
    ClassifyTiming,
    Pair,
    PairLogits,
    decision_sha256,
    normalize,
    prompt_version,
    render_hypothesis,
    render_premise,
)
from semif_bento.errors import PromptTooLong, ScoringFailed

MOST_OPTIONS = 255


class EntailmentEngine:
    """Asks for each option whether the state entails it.

    Args:
        classifier: what reads pairs; `POST /classify` asks it directly.
        max_pairs: most options of all decisions of a request together.
    """

    name = "nli"
    most_options = MOST_OPTIONS
    direct_readout = shared_readout = NLI_READOUT
    probability_status = NLI_PROBABILITY_STATUS

    def __init__(self, classifier: Classifier, max_pairs: int) -> None:
        self.classifier = classifier
        self.identity = classifier.identity
        self.max_pairs = max_pairs

    def prompt_version(self, options: int) -> str:
        """Return the version of hypothesis and template; it is the same for any options."""
        return prompt_version(self.classifier.template)

    def check(self, request: ScoreRequest) -> None:
        """Refuse more pairs than a request may make.

        Raises:
            PromptTooLong: it makes more.
        """
        self.refuse_many(sum(len(decision.options) for decision in request.decisions))

    def refuse_many(self, pairs: int) -> None:
        """Refuse so many pairs, or don't.

        Raises:
            PromptTooLong: they are over the limit.
        """
        if pairs > self.max_pairs:
            raise PromptTooLong(
                f"The request makes {pairs} pairs; at most {self.max_pairs} are taken."
            )

    def direct(self, request: ScoreRequest, caller: Caller | None = None) -> DirectOutcome:
        """Score the only decision of `request`; its options share what they have in common.

        Raises:
            RequestError: as the classifier raises it.
        """
        (scores,), timing = self._judge(request, caller)
        forward_seconds = timing.prefill_seconds + timing.forward_seconds
        return DirectOutcome(scores, forward_seconds, timing.total_seconds)

    def shared(self, request: ScoreRequest, caller: Caller | None = None) -> SharedOutcome:
        """Score every decision of `request` in one call of the classifier.

        Raises:
            RequestError: as the classifier raises it.
        """
        scores, timing = self._judge(request, caller)
        return SharedOutcome(
            scores, _to_timing(timing, len(scores)), self.classifier.serving_config
        )

    def status(self) -> EngineStatus:
        """Report what the classifier reports."""
        return self.classifier.status()

    def _judge(
        self, request: ScoreRequest, caller: Caller | None
    ) -> tuple[tuple[Scores, ...], ClassifyTiming]:
        pairs = to_pairs(request.state, request.decisions)
        outcome = self.classifier.classify([pair for each in pairs for pair in each], caller)
        if len(outcome.rows) != sum(map(len, pairs)):
            raise ScoringFailed("The classifier did not answer every input.")
        scores, start = [], 0
        for decision, own in zip(request.decisions, pairs, strict=True):
            rows = outcome.rows[start : start + len(own)]
            start += len(own)
            scores.append(self._to_scores(decision, own, rows, request.diagnostics))
        return tuple(scores), outcome.timing

    def _to_scores(
        self,
        decision: Decision,
        pairs: Sequence[Pair],
        rows: Sequence[PairLogits],
        diagnostics: bool,
    ) -> Scores:
        """Return a decision's answer; its tokens sum its pairs', as if nothing was shared."""
        found = normalize(rows)
        return Scores(
            decision_id=decision.id,
            option_ids=tuple(option.id for option in decision.options),
            option_logits=found.option_logits,
            probabilities=found.probabilities,
            input_tokens=sum(row.input_tokens for row in rows),
            prompt_sha256=decision_sha256(self.classifier.template, pairs),
            support=found.support,
            pair_logits=tuple(row.logits for row in rows) if diagnostics else None,
        )


def to_pairs(state: JsonState, decisions: Sequence[Decision]) -> list[list[Pair]]:
    """Return for each decision one pair for each option: the state, and what the option claims."""
    premise = render_premise(state)  # once: a state may be long, and the decisions many
    return [
        [Pair(premise, _hypothesis(decision, option)) for option in decision.options]
        for decision in decisions
    ]


def _hypothesis(decision: Decision, option: Option) -> str:
    return render_hypothesis(decision.question, option.name, option.description)


def _to_timing(timing: ClassifyTiming, decisions: int) -> SharedTiming:
    return SharedTiming(
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
