"""The hand-over types between the rooms, each defined once; knows nothing of HTTP or tensors.

A request travels as ScoreRequest → (inside the engine: encoded request → branch logits) →
DirectOutcome or SharedOutcome → response. Everything here is frozen.
"""

from dataclasses import dataclass
from typing import Literal, Protocol

from semif_bento.caller import Caller

JsonState = str | dict[str, object] | list[object]
"""A nonempty string, object or array of finite JSON; key order and digits are meaning."""


@dataclass(frozen=True, slots=True)
class Option:
    """One answer that the caller offers; `id` never reaches the model, `description` does.

    `label` is the short name that the caller gave it beside the description, where there is one.
    """

    id: str
    description: str
    label: str | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """A question with 2 or more options; option k answers to the k-th letter.

    `kind` is what the protocol says of the options: nothing, or that they are yes and no, one of
    several categories, or levels of a scale.
    """

    id: str
    question: str
    options: tuple[Option, ...]
    kind: Literal["options", "yes_no", "choice", "levels"] = "options"


@dataclass(frozen=True, slots=True)
class ScoreRequest:
    """One state and the decisions asked about it (exactly one for a direct call)."""

    state: JsonState
    decisions: tuple[Decision, ...]
    diagnostics: bool = False


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """What answered: the same six facts SemIf reports, in SemIf's order."""

    source: str
    revision: str
    dtype: str
    device: str
    torch_version: str
    transformers_version: str


@dataclass(frozen=True, slots=True)
class Scores:
    """One decision's native answer.

    `option_logits` are the last position's float32 logits at the slots, `probabilities` their
    softmax (each in 0..1, sum 1), both in the order of the options. `letter_mass` is the
    probability of the declared letters within the whole vocabulary (0..1), present only when
    diagnostics were asked for.
    """

    decision_id: str
    option_ids: tuple[str, ...]
    option_logits: tuple[float, ...]
    probabilities: tuple[float, ...]
    input_tokens: int
    prompt_sha256: str
    letter_mass: float | None = None


@dataclass(frozen=True, slots=True)
class DirectOutcome:
    """The answer to one decision, with its times in seconds.

    `readout` tells what was read; None where it is what the protocol's own readout says.
    """

    scores: Scores
    forward_seconds: float
    total_seconds: float
    readout: str | None = None


@dataclass(frozen=True, slots=True)
class SharedTiming:
    """Where a shared call's time went: seconds, token counts, and how the branches were run.

    `batch_size` is the number of decisions; `branch_groups` the number of forwards they took.
    `padded_suffix_tokens` counts what was computed, `true_suffix_tokens` what was asked.
    """

    total_seconds: float
    encode_seconds: float
    prefix_tokens: int
    prefill_seconds: float
    replicate_seconds: float
    suffix_forward_seconds: float
    batch_size: int
    true_suffix_tokens: int
    padded_suffix_tokens: int
    branch_groups: int
    cache_hit: bool


@dataclass(frozen=True, slots=True)
class SharedOutcome:
    """The answers to many decisions over one state, in request order; `readout` as above."""

    scores: tuple[Scores, ...]
    timing: SharedTiming
    serving_config: str
    readout: str | None = None


@dataclass(frozen=True, slots=True)
class PrefixCacheStatus:
    """The prefix cache in figures: entries and bytes held, its cap, and hits and misses so far."""

    entries: int
    bytes: int
    capacity_bytes: int
    hits: int
    misses: int


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """One server of a remote engine: whether it is asked now, and how many calls it answers.

    `name` is its address without scheme or secret. `faults` counts calls that failed by its fault,
    `ejections` how often it was taken out.
    """

    name: str
    is_ready: bool
    running: int
    calls: int
    faults: int
    ejections: int


@dataclass(frozen=True, slots=True)
class ScorerStatus:
    """What an operator asks next after 'is it up': device, memory in GiB, kernels, cache.

    `servers` is empty where this process computes.
    """

    device_name: str
    allocated_gib: float
    reserved_gib: float
    linear_attention_kernels: str
    branch_attention: str
    matrix_products: str
    branch_budget_mib: float
    prefix_cache: PrefixCacheStatus
    servers: tuple[ServerStatus, ...] = ()


class Scorer(Protocol):
    """What the serving side calls. Not thread-safe unless its backend has several slots.

    A decision may have up to `wide_slot_count` options; over `slot_count` its prompt is a wide one.
    `status` alone may be called from any thread at any time; it never waits for a call.
    """

    identity: ModelIdentity
    slot_count: int
    wide_slot_count: int

    def direct(self, request: ScoreRequest, caller: Caller | None = None) -> DirectOutcome:
        """Score the only decision of `request` by one whole forward, no cache involved.

        Args:
            request: one state and one decision.
            caller: whom the answer is for; a call may stop early when they have left.

        Raises:
            ClientClosed: the caller left.
            PromptTooLong: the prompt is over the token limit.
            InvalidRequest: its text cannot be encoded, or it has more options than slots.
            OutOfMemory: the device ran out of memory; nothing of the call is kept.
            ScoringFailed: a logit is not finite, or anything else failed.
        """
        ...

    def shared(self, request: ScoreRequest, caller: Caller | None = None) -> SharedOutcome:
        """Score every decision of `request` against one prefill of its state.

        Raises:
            The same as `direct`.
        """
        ...

    def status(self) -> ScorerStatus:
        """Report memory, kernels and cache figures without touching the running call."""
        ...
