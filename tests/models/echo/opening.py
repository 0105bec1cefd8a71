"""Open the echo engine."""

import hashlib

from semif_bento.caller import Caller
from semif_bento.decisions import (
    Decision,
    DirectOutcome,
    EngineStatus,
    ModelIdentity,
    PrefixCacheStatus,
    ScoreRequest,
    Scores,
    SharedOutcome,
    SharedTiming,
)
from semif_bento.engine.opening import Opening
from semif_bento.protocol import softmax


def load_weights(opening: Opening) -> str:
    return opening.once("echo", lambda: "nothing to load")


def open_engine(opening: Opening) -> "EchoEngine":
    assert load_weights(opening) == "nothing to load"
    return EchoEngine()


class EchoEngine:
    """Counts how often an option's name stands in the state."""

    name = "echo"
    identity = ModelIdentity("echo", "r1", "float32", "cpu", "0", "0")
    most_options = 40
    direct_readout = shared_readout = "counts of the option's name in the state"
    probability_status = "counts, no more"

    def prompt_version(self, options: int) -> str:
        return "echo-v1"

    def check(self, request: ScoreRequest) -> None:
        pass

    def direct(self, request: ScoreRequest, caller: Caller | None = None) -> DirectOutcome:
        return DirectOutcome(_scores(request, request.decisions[0]), 0.1, 0.2)

    def shared(self, request: ScoreRequest, caller: Caller | None = None) -> SharedOutcome:
        scores = tuple(_scores(request, decision) for decision in request.decisions)
        timing = SharedTiming(0.1, 0.1, 5, 0.1, 0.0, 0.1, len(scores), 3, 3, 1, False)
        return SharedOutcome(scores, timing, "echo-v1")

    def status(self) -> EngineStatus:
        return EngineStatus(
            "cpu", 0.0, 0.0, "none", "none", "none", 0.0, PrefixCacheStatus(0, 0, 0, 0, 0)
        )


def _scores(request: ScoreRequest, decision: Decision) -> Scores:
    logits = tuple(float(str(request.state).count(one.name)) for one in decision.options)
    digest = hashlib.sha256(f"{request.state}{decision.question}".encode()).hexdigest()
    ids = tuple(one.id for one in decision.options)
    return Scores(decision.id, ids, logits, softmax(logits), 8, digest)
