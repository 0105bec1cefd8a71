"""The hand-over types between the rooms, each defined once; knows nothing of HTTP or tensors.

A request travels as ScoreRequest → (inside the engine: encoded request → branch logits) →
DirectOutcome or SharedOutcome → response. Everything here is frozen.
"""

from dataclasses import dataclass
from typing import Literal, Protocol

from semif_bento.caller import Caller

JsonState = str | dict[str, object] | list[object]
"""A nonempty string, object or array of finite JSON; key order and digits are meaning."""
Kind = Literal["options", "yes_no", "choice", "levels"]


@dataclass(frozen=True, slots=True)
class Option:
    """One answer that the caller offers.

    `description` reaches every model, `label` (what the answer is called) only engines that read
    one; where it is None they read `id`.
    """

    id: str
    description: str
    label: str | None = None

    @property
    def name(self) -> str:
        """What the answer is called."""
        return self.id if self.label is None else self.label


@dataclass(frozen=True, slots=True)
class Decision:
    """A question with 2 or more options; `kind` tells what they are to each other.

    `options` are a caller's own; those of the other kinds come from typed questions.
    """

    id: str
    question: str
    options: tuple[Option, ...]
    kind: Kind = "options"


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

    `option_logits` are what the engine read (float32, nats), `probabilities` their softmax (each
    in 0..1, sum 1), both in the order of the options. Each engine has some of the rest:
    `letter_mass` is the probability of the declared letters within the whole vocabulary (0..1),
    `pair_logits` are an NLI head's logits of each option; both only when diagnostics were asked
    for. `support` tells how much of any option is established at all (0..1).
    """

    decision_id: str
    option_ids: tuple[str, ...]
    option_logits: tuple[float, ...]
    probabilities: tuple[float, ...]
    input_tokens: int
    prompt_sha256: str
    letter_mass: float | None = None
    support: float | None = None
    pair_logits: tuple[tuple[float, ...], ...] | None = None


@dataclass(frozen=True, slots=True)
class DirectOutcome:
    """The answer to one decision, with its times in seconds."""

    scores: Scores
    forward_seconds: float
    total_seconds: float


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
    """The answers to many decisions over one state, in request order."""

    scores: tuple[Scores, ...]
    timing: SharedTiming
    serving_config: str


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
class EngineStatus:
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


class Engine(Protocol):
    """What the serving side calls. Not thread-safe unless its backend has several slots.

    `name` is what requests call it by, `most_options` how many a decision may have. The readouts
    and the status say in words what was read and what a probability means. `status` alone may be
    called from any thread at any time; it never waits for a call.
    """

    name: str
    identity: ModelIdentity
    most_options: int
    direct_readout: str
    shared_readout: str
    probability_status: str

    def prompt_version(self, options: int) -> str:
        """Return the version of what a decision with so many options makes the model read."""
        ...

    def check(self, request: ScoreRequest) -> None:
        """Refuse what can be told without the model; called before a request waits for a slot.

        Raises:
            InvalidRequest: it would be refused in any case.
        """
        ...

    def direct(self, request: ScoreRequest, caller: Caller | None = None) -> DirectOutcome:
        """Score the only decision of `request` by itself, no cached state involved.

        Args:
            request: one state and one decision.
            caller: whom the answer is for; a call may stop early when they have left.

        Raises:
            ClientClosed: the caller left.
            PromptTooLong: the prompt is over the token limit.
            InvalidRequest: a text cannot be encoded, or there are more options than it takes.
            OutOfMemory: the device ran out of memory; nothing of the call is kept.
            ScoringFailed: a number is not finite, or anything else failed.
        """
        ...

    def shared(self, request: ScoreRequest, caller: Caller | None = None) -> SharedOutcome:
        """Score every decision of `request` against one prefill of its state.

        Raises:
            The same as `direct`.
        """
        ...

    def status(self) -> EngineStatus:
        """Report memory, kernels and cache figures without touching the running call."""
        ...
