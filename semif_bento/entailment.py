"""Decisions by entailment: pairs, hypotheses, `normalized_entailment_v1`, and the hand-over types.

Knows nothing of tokenizers, tensors or HTTP. Source of templates and method: the openjev model
card and gateway (AlexWortega/openjev, MIT).
"""

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from semif_bento.caller import Caller
from semif_bento.decisions import EngineStatus, JsonState, ModelIdentity
from semif_bento.protocol import softmax

LABELS = ("contradiction", "entailment", "neutral")
"""The only order of logits that is served; a checkpoint with another one is refused at start."""
ENTAILMENT = LABELS.index("entailment")

PAIR_TEMPLATE = "Premise: {premise}\nHypothesis: {hypothesis}"
HYPOTHESIS_VERSION = "nli-hyp-v1"
METHOD = "normalized_entailment_v1"
NLI_READOUT = "log-probability of entailment of each option's hypothesis, by a classification head"
NLI_PROBABILITY_STATUS = f"{METHOD}; uncalibrated as decision confidence"

LEAST_PROBABILITY = 5e-324
"""The smallest positive number there is: an entailment that underflows counts as this much."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A premise and a hypothesis as they were given; white space around either says nothing."""

    premise: str
    hypothesis: str


@dataclass(frozen=True, slots=True)
class Rendered:
    """A text in which premise and hypothesis stand already, as the checkpoint's template has it."""

    text: str


@dataclass(frozen=True, slots=True)
class Tokens:
    """Token ids as they go to the model."""

    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PairLogits:
    """What the head says of one input.

    `logits` are float32 in the order of `LABELS`; `tokens_sha256` is the hash of the token ids,
    each as four bytes, lowest first.
    """

    logits: tuple[float, float, float]
    input_tokens: int
    tokens_sha256: str

    @property
    def probabilities(self) -> tuple[float, ...]:
        """The softmax of the logits, in the order of `LABELS`."""
        return softmax(self.logits)


@dataclass(frozen=True, slots=True)
class ClassifyTiming:
    """Where a call's time went, in seconds, and what was shared.

    `input_tokens` were asked for. Of those, `prefix_tokens` lay in beginnings that several inputs
    share, each counted once, and `cached_tokens` of them were known already; `suffix_tokens` were
    run for each distinct input by itself, `padded_tokens` with their padding, in `groups` forwards.
    """

    total_seconds: float
    encode_seconds: float
    prefill_seconds: float
    forward_seconds: float
    input_tokens: int
    prefix_tokens: int
    cached_tokens: int
    suffix_tokens: int
    padded_tokens: int
    groups: int


@dataclass(frozen=True, slots=True)
class ClassifyOutcome:
    """The answers to many inputs, in request order."""

    rows: tuple[PairLogits, ...]
    timing: ClassifyTiming


class Classifier(Protocol):
    """What the serving side calls. Not thread-safe unless its backend says so.

    `template` is the checkpoint's own, with `{premise}` and `{hypothesis}`. `status` alone may be
    called from any thread at any time; it never waits for a call.
    """

    identity: ModelIdentity
    template: str
    serving_config: str

    def classify(
        self, inputs: Sequence[Pair | Rendered | Tokens], caller: Caller | None = None
    ) -> ClassifyOutcome:
        """Return the logits of every input; beginnings that inputs share are read once.

        Args:
            inputs: 1 or more.
            caller: whom the answer is for; a call stops early when they have left.

        Raises:
            PromptTooLong: an input is over the token limit; nothing is ever cut off.
            InvalidRequest: a text cannot be encoded, or an id is not one of the model's.
            ClientClosed: the caller left.
            OutOfMemory: the device ran out of memory; nothing of the call is kept.
            ScoringFailed: a logit is not finite, or anything else failed.
        """
        ...

    def status(self) -> EngineStatus:
        """Report memory, kernels and cache figures without touching the running call."""
        ...


@dataclass(frozen=True, slots=True)
class EntailmentScores:
    """What entailment says of a decision, in the order of its options.

    `option_logits` are the natural logs of the entailment probabilities e; `probabilities` are
    e / Σe, uniform where every e underflows; `support` is the largest e (0..1), which other
    options don't change: how much anything is established at all.
    """

    option_logits: tuple[float, ...]
    probabilities: tuple[float, ...]
    support: float


def normalize(rows: Sequence[PairLogits]) -> EntailmentScores:
    """Apply `normalized_entailment_v1` to one row for each option."""
    entailed = [row.probabilities[ENTAILMENT] for row in rows]
    total = math.fsum(entailed)
    return EntailmentScores(
        option_logits=tuple(math.log(max(e, LEAST_PROBABILITY)) for e in entailed),
        probabilities=tuple(e / total if total else 1 / len(entailed) for e in entailed),
        support=max(entailed),
    )


def render_premise(state: JsonState) -> str:
    """Return a state as a premise: a string as it is, anything else as JSON."""
    return state if isinstance(state, str) else json.dumps(state, ensure_ascii=False)


def render_hypothesis(question: str, label: str, criterion: str) -> str:
    """Return the claim that an option is the answer (`nli-hyp-v1`).

    A quotation mark in the question stays as it is: checkpoints were trained that way.
    """
    return f'The answer to "{question.strip()}" is {label}: {criterion}'


def render_pair(template: str, pair: Pair) -> str:
    """Return the text that the model reads; braces in either part are text."""
    before, between, after = _parts(template)
    return f"{before}{pair.premise.strip()}{between}{pair.hypothesis.strip()}{after}"


def template_version(template: str) -> str:
    """Return the name of a checkpoint's template: `nli-pair-v1`, or one by its hash."""
    if template == PAIR_TEMPLATE:
        return "nli-pair-v1"
    return f"nli-pair-{hashlib.sha256(template.encode()).hexdigest()[:12]}"


def prompt_version(template: str) -> str:
    """Return the version of what a decision makes an NLI model read."""
    return f"{HYPOTHESIS_VERSION}/{template_version(template)}"


def decision_sha256(template: str, pairs: Sequence[Pair]) -> str:
    """Return the hash of all that was read for a decision, as 64 hex digits.

    It is the SHA-256 of the pairs' own hex SHA-256 (of their text in UTF-8), joined in the order
    of the options.
    """
    before, between, after = _parts(template)
    begun: dict[str, hashlib._Hash] = {}  # a premise may be long, and its pairs many
    digests = []
    for pair in pairs:
        if pair.premise not in begun:
            opening = f"{before}{pair.premise.strip()}{between}"
            begun[pair.premise] = hashlib.sha256(opening.encode())
        digest = begun[pair.premise].copy()
        digest.update(f"{pair.hypothesis.strip()}{after}".encode())
        digests.append(digest.hexdigest())
    return hashlib.sha256("".join(digests).encode()).hexdigest()


def _parts(template: str) -> tuple[str, str, str]:
    """Return what stands before the premise, between premise and hypothesis, and after it."""
    before, rest = template.split("{premise}")
    between, after = rest.split("{hypothesis}")
    return before, between, after
