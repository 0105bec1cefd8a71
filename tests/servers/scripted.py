"""The service over a scorer that does what the state asks for; `bentoml serve` loads it for tests.

A state of {"until": path}, {"sleep": seconds}, {"raise": kind} or {"answer": "malformed"} makes the
scorer do that; a call of the first kind lasts until there is such a file. /health shows what it
counted, so a test can tell from outside how many calls reached it and whether two overlapped. With
SEMIF_NLI_MODEL a scripted classifier is served too, and counted together.
"""

import time
from dataclasses import replace
from typing import Any

from bentoml._internal.utils import circus

from semif_bento.backend import Backend
from semif_bento.caller import Caller
from semif_bento.decisions import (
    DirectOutcome,
    Engine,
    EngineStatus,
    ModelIdentity,
    PrefixCacheStatus,
    ScoreRequest,
    Scores,
    SharedOutcome,
    SharedTiming,
)
from semif_bento.engine.nli.engine import EntailmentEngine
from semif_bento.errors import OutOfMemory, PromptTooLong, ScoringFailed, StartupError
from semif_bento.protocol import (
    DIRECT_READOUT,
    PROBABILITY_STATUS,
    SHARED_READOUT,
    prompt_sha256,
    prompt_version,
    render_payload,
    softmax,
    wide_letters,
)
from semif_bento.settings import Settings
from service import SemIf
from tests.servers.classifier import Counts, ScriptedClassifier
from tests.servers.gate import wait_for_file

TOKENS = 7


class ScriptedScorer:
    """Answers at once with logits 0, 1, 2, … unless the state says otherwise."""

    identity = ModelIdentity("scripted", "r1", "float32", "cpu", "0", "0")
    name = "letters"
    most_options = 255
    direct_readout, shared_readout = DIRECT_READOUT, SHARED_READOUT
    probability_status = PROBABILITY_STATUS

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self.hits = 0

    def prompt_version(self, options: int) -> str:
        """Return the version of the letters' prompt."""
        return prompt_version(options)

    def check(self, request: ScoreRequest) -> None:
        """Refuse nothing."""

    def direct(self, request: ScoreRequest, caller: Caller | None = None) -> DirectOutcome:
        """Count the call, do what the state says, answer; the time may be no number."""
        [scores] = self._score(request)
        seconds: Any = 0.25
        if isinstance(request.state, dict) and request.state.get("answer") == "malformed":
            seconds = str(request.state)
        return DirectOutcome(scores, seconds, 0.5)

    def shared(self, request: ScoreRequest, caller: Caller | None = None) -> SharedOutcome:
        """Count the call, do what the state says, answer; every second call is a cache hit."""
        scores = self._score(request)
        match request.state:
            case {"answer": "incomplete"}:
                scores = scores[:-1]
            case {"answer": "out of range"}:
                scores = tuple(replace(one, probabilities=(1.5, -0.5)) for one in scores)
        self.hits += 1
        timing = SharedTiming(0.5, 0.1, 5, 0.1, 0.1, 0.1, len(scores), 4, 6, 1, self.hits % 2 == 0)
        return SharedOutcome(scores, timing, "scripted")

    def status(self) -> EngineStatus:
        """Report the counts where a real scorer reports its figures."""
        cache = PrefixCacheStatus(1, 2, 3, self.hits // 2, self.hits - self.hits // 2)
        return EngineStatus(str(self._counts), 0.5, 1.5, "none", "none", "native", 16.0, cache)

    def _score(self, request: ScoreRequest) -> tuple[Scores, ...]:
        self._counts.begin()
        try:
            _act(request.state)
            return tuple(
                Scores(
                    decision.id,
                    tuple(option.id for option in decision.options),
                    tuple(map(float, range(len(decision.options)))),
                    softmax(range(len(decision.options))),
                    TOKENS,
                    prompt_sha256(render_payload(request.state, decision, tuple(wide_letters()))),
                    0.75 if request.diagnostics else None,
                )
                for decision in request.decisions
            )
        finally:
            self._counts.ended += 1


def _act(state: object) -> None:
    match state:
        case {"until": str(path)}:
            wait_for_file(path)
        case [{"content": [dict(inner)]}]:  # what /v1/decisions makes of one JSON part
            _act(inner)
        case {"sleep": float(seconds) | int(seconds)}:
            time.sleep(seconds)
        case {"raise": "out of memory"}:
            raise OutOfMemory("The device ran out of memory.")
        case {"raise": "too long"}:
            raise PromptTooLong("Decision 0 makes a prompt of 5000 tokens; the limit is 4096.")
        case {"raise": "not finite"}:
            raise ScoringFailed("A logit is not finite.")
        case {"raise": "unexpected", **rest}:
            raise KeyError(f"not there: {rest}")


def open_scripted(settings: Settings) -> Backend:
    """Load late or not at all, as the revision asks: `until:<path>`, `fail` or `crash`."""
    revision = settings.revision or ""
    if revision == "crash":
        raise RuntimeError("a driver's own words")
    if revision == "fail":
        raise StartupError("The weights are not complete.")
    if revision.startswith("until:"):
        wait_for_file(revision.removeprefix("until:"))
    counts = Counts()
    engines: dict[str, Engine] = {}
    if settings.has_causal_model:
        engines["letters"] = ScriptedScorer(counts)
    if settings.nli_model:
        engines["nli"] = EntailmentEngine(ScriptedClassifier(counts), settings.max_pairs)
    return Backend(engines)


SemIf.inner.open_backend = staticmethod(open_scripted)


class _Attentive(circus.Arbiter):
    """Looks for a worker that has ended every second, and not every ten: tests wait for it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "check_delay": 1})


circus.Arbiter = _Attentive
