"""Run all pairs through the classifier in batches, with the prefix cache in a known state.

Knows nothing of references or printing.
"""

import time
from dataclasses import dataclass
from typing import Literal

from semif_bento.bench.classify.inputs import FrozenInputs, FrozenPair
from semif_bento.bench.classify.reference import Triple
from semif_bento.engine.nli.classifier import TorchClassifier
from semif_bento.entailment import Tokens
from semif_bento.errors import ScoringFailed

State = Literal["disabled", "cold", "warm"]
STATES: tuple[State, ...] = ("disabled", "cold", "warm")
"""Sharing off; the cache cleared before the pass; the cache as the cold pass left it. They run in
this order, round after round: a pass without sharing neither reads nor fills the cache."""


@dataclass(frozen=True, slots=True)
class Pass:
    """All pairs once: seconds in all and of each batch, and every answer.

    `round` 0 is the warm-up. `cached_tokens` of `prefix_tokens` shared ones came from the cache.
    """

    state: State
    round: int
    seconds: float
    batch_seconds: tuple[float, ...]
    prefix_tokens: int
    cached_tokens: int
    logits: tuple[Triple, ...]


def run_pass(
    classifier: TorchClassifier, inputs: FrozenInputs, state: State, round_: int, batch: int
) -> Pass:
    """Run every pair once, `batch` at a time, by its token ids.

    Raises:
        ScoringFailed: the classifier failed, or answered for other tokens than it was given.
        OutOfMemory: the device ran out of memory.
    """
    if state == "cold":
        classifier.forget_prefixes()
    seconds: list[float] = []
    logits: list[Triple] = []
    prefix_tokens = cached_tokens = 0
    classifier.shares = state != "disabled"
    try:
        for first in range(0, len(inputs.rows), batch):
            rows = inputs.rows[first : first + batch]
            given = [Tokens(row.ids) for row in rows]
            started = time.perf_counter()
            outcome = classifier.classify(given)
            seconds.append(time.perf_counter() - started)
            _require_same(rows, [answer.tokens_sha256 for answer in outcome.rows])
            logits.extend(answer.logits for answer in outcome.rows)
            prefix_tokens += outcome.timing.prefix_tokens
            cached_tokens += outcome.timing.cached_tokens
    finally:
        classifier.shares = True
    return Pass(
        state, round_, sum(seconds), tuple(seconds), prefix_tokens, cached_tokens, tuple(logits)
    )


def _require_same(rows: tuple[FrozenPair, ...], answered: list[str]) -> None:
    for row, digest in zip(rows, answered, strict=True):
        if row.tokens_sha256 != digest:
            raise ScoringFailed(f"Pair {row.pair.id!r} was answered for other token ids.")
