"""The service over a scorer that does what the state asks for; `bentoml serve` loads it for tests.

A state of {"sleep": seconds}, {"raise": kind} or {"answer": "malformed"} makes the scorer do that;
/health shows what it counted, so a test can tell from outside how many calls reached it and whether
two overlapped. With SEMIF_NLI_MODEL a scripted classifier is served too, and counted together.
"""

import time
from dataclasses import replace
from typing import Any

from semif_bento.backend import Backend
from semif_bento.caller import Caller
from semif_bento.decisions import (
    DirectOutcome,
    ModelIdentity,
    PrefixCacheStatus,
    ScoreRequest,
    ScorerStatus,
    Scores,
    SharedOutcome,
    SharedTiming,
)
from semif_bento.errors import OutOfMemory, PromptTooLong, ScoringFailed, StartupError
from semif_bento.protocol import prompt_sha256, render_payload, softmax, wide_letters
from semif_bento.settings import Settings
from service import SemIf
from tests.servers.classifier import Counts, ScriptedClassifier

TOKENS = 7


class ScriptedScorer:
    """Answers at once with logits 0, 1, 2, … unless the state says otherwise."""

    identity = ModelIdentity("scripted", "r1", "float32", "cpu", "0", "0")
    slot_count = 16
    wide_slot_count = 255

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self.hits = 0

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

    def status(self) -> ScorerStatus:
        """Report the counts where a real scorer reports its figures."""
        cache = PrefixCacheStatus(1, 2, 3, self.hits // 2, self.hits - self.hits // 2)
        return ScorerStatus(str(self._counts), 0.5, 1.5, "none", "none", "native", 16.0, cache)

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
    """Load slowly or not at all, as the revision asks: `load:<seconds>`, `fail` or `crash`."""
    revision = settings.revision or ""
    if revision == "crash":
        raise RuntimeError("a driver's own words")
    if revision == "fail":
        raise StartupError("The weights are not complete.")
    if revision.startswith("load:"):
        time.sleep(float(revision.removeprefix("load:")))
    counts = Counts()
    return Backend(
        letter=ScriptedScorer(counts) if settings.has_letter_engine else None,
        nli=ScriptedClassifier(counts) if settings.nli_model else None,
    )


SemIf.inner.open_backend = staticmethod(open_scripted)
