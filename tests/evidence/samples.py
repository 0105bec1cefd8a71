"""Labelled answers with known properties, rows, and a scorer that answers as it is told."""

import math
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

from semif_bento.decisions import (
    Decision,
    DirectOutcome,
    EngineStatus,
    ModelIdentity,
    Option,
    PrefixCacheStatus,
    ScoreRequest,
    Scores,
    SharedOutcome,
    SharedTiming,
)
from semif_bento.errors import InvalidRequest, RequestError
from semif_bento.evidence.metrics import Answers
from semif_bento.evidence.rows import Row
from semif_bento.evidence.scoring import ScoredRows
from semif_bento.evidence.target import Target
from semif_bento.protocol import prompt_sha256, render_payload, softmax

MODEL = ModelIdentity("scripted", "r1", "float32", "cpu", "0", "0")
Logits = Callable[[str, Decision], Sequence[float]]


def exact_answers(temperature: float, repeats: int = 5) -> Answers:
    """Answers whose labels fall exactly as softmax(logits / temperature) says they do."""
    logits, right = [], []
    for shares in ((3, 1), (4, 1), (1, 2), (2, 1, 1), (5, 2, 1), (1, 1, 6)):
        row = [temperature * math.log(share) for share in shares]
        for place, share in enumerate(shares):
            logits += [row] * share * repeats
            right += [place] * share * repeats
    return Answers.of(logits, right, [f"g{index}" for index in range(len(right))])


def make_row(index: int, options: int = 2, answer: int = 0, **changes: Any) -> Row:
    choices = tuple(Option(f"o{n}", f"the {n}th way of {index}") for n in range(options))
    fields: dict[str, Any] = {
        "line": index + 1,
        "state": f"state {index}",
        "decision": Decision(f"row{index}", f"Which of {index}?", choices),
        "answer": f"o{answer}",
        "group": f"g{index}",
    }
    return Row(**{**fields, **changes})


def make_scored(rows: Sequence[Row], logits: Sequence[Sequence[float]]) -> ScoredRows:
    scores = [
        make_scores(row.decision, row.state, own) for row, own in zip(rows, logits, strict=True)
    ]
    return ScoredRows(tuple(rows), tuple(scores))


def make_scores(decision: Decision, state: Any, logits: Sequence[float]) -> Scores:
    return Scores(
        decision.id,
        tuple(option.id for option in decision.options),
        tuple(logits),
        softmax(logits),
        7,
        prompt_sha256(render_payload(state, decision)),
    )


def read_digits(_: str, decision: Decision) -> list[float]:
    """Logits that depend on every description, and on nothing else."""
    return [float(sum(option.description.encode()) % 89) for option in decision.options]


class ToldScorer:
    """Answers with `logits(kind, decision)`, kind "direct" or "shared"; counts its calls."""

    slot_count = 16

    def __init__(self, logits: Logits = read_digits, identity: ModelIdentity = MODEL) -> None:
        self.identity, self._logits = identity, logits
        self.calls: list[str] = []
        self.fail_after: int | None = None
        self.refused: set[str] = set()

    def direct(self, request: ScoreRequest) -> DirectOutcome:
        [decision] = request.decisions
        return DirectOutcome(self._score("direct", request.state, decision), 0.01, 0.02)

    def shared(self, request: ScoreRequest) -> SharedOutcome:
        count = len(request.decisions)
        scores = tuple(self._score("shared", request.state, each) for each in request.decisions)
        words = len(str(request.state).split())
        timing = SharedTiming(
            0.02, 0.0, words, 0.01, 0.0, 0.01, count, 9 * count, 9 * count, 1, False
        )
        return SharedOutcome(scores, timing, "told")

    def status(self) -> EngineStatus:
        texts: dict[str, Any] = {field.name: "told" for field in fields(EngineStatus)}
        numbers = {"allocated_gib": 0.1, "reserved_gib": 0.2, "branch_budget_mib": 16.0}
        cache = PrefixCacheStatus(0, 0, 0, 0, 0)
        return EngineStatus(**{**texts, **numbers, "prefix_cache": cache, "servers": ()})

    def _score(self, kind: str, state: Any, decision: Decision) -> Scores:
        if self.fail_after is not None and len(self.calls) >= self.fail_after:
            raise RequestError("It failed.")
        if decision.id in self.refused:
            raise InvalidRequest("The prompt has 9 tokens; at most 8 are taken.")
        self.calls.append(kind)
        return make_scores(decision, state, self._logits(kind, decision))


def make_target(scorer: ToldScorer) -> Target:
    return Target(scorer, "told", max_tokens=600, max_decisions=24, vram_cap_gib=0.0)
