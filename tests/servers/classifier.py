"""A classifier that does what its inputs ask for, to be served beside the scripted scorer.

Three numbers at the end of a text, or of ids, are its logits; `until <path>`,
`sleep <seconds>` or `raise <kind>` anywhere in a text makes the call do that.
"""

import hashlib
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass

from semif_bento.caller import Caller
from semif_bento.decisions import EngineStatus, ModelIdentity, PrefixCacheStatus
from semif_bento.entailment import (
    PAIR_TEMPLATE,
    ClassifyOutcome,
    ClassifyTiming,
    Pair,
    PairLogits,
    Rendered,
    Tokens,
    render_pair,
)
from semif_bento.errors import ClientClosed, OutOfMemory, PromptTooLong, ScoringFailed
from tests.servers.gate import STEP_S, wait_for_file

NUMBERS = re.compile(r"(-?[\d.]+) (-?[\d.]+) (-?[\d.]+)\W*$")


@dataclass(slots=True)
class Counts:
    """What reached the engines of a process: calls that began, ended, overlapped another one;
    inputs of a classifier; callers who were seen to have left."""

    calls: int = 0
    ended: int = 0
    overlaps: int = 0
    inputs: int = 0
    left: int = 0

    def begin(self) -> None:
        self.calls += 1
        self.overlaps += self.calls - self.ended - 1

    def __str__(self) -> str:
        return " ".join(f"{name}={getattr(self, name)}" for name in self.__slots__)


class ScriptedClassifier:
    """Answers at once with logits 0, 1, 2 unless an input says otherwise."""

    identity = ModelIdentity("scripted-nli", "r1", "float32", "cpu", "0", "0")
    template = PAIR_TEMPLATE
    serving_config = "scripted-nli"

    def __init__(self, counts: Counts) -> None:
        self._counts = counts

    def classify(
        self, inputs: Sequence[Pair | Rendered | Tokens], caller: Caller | None = None
    ) -> ClassifyOutcome:
        self._counts.begin()
        self._counts.inputs += len(inputs)
        try:
            rows = tuple(self._answer(given, caller or Caller()) for given in inputs)
        finally:
            self._counts.ended += 1
        if any("answer incomplete" in _text(given) for given in inputs):
            rows = rows[:-1]
        tokens = sum(row.input_tokens for row in rows)
        return ClassifyOutcome(rows, ClassifyTiming(0.5, 0.1, 0.125, 0.25, tokens, 5, 5, 4, 6, 1))

    def status(self) -> EngineStatus:
        cache = PrefixCacheStatus(0, 0, 0, 0, 0)
        return EngineStatus(str(self._counts), 0.5, 1.5, "none", "none", "native", 16.0, cache)

    def _answer(self, given: Pair | Rendered | Tokens, caller: Caller) -> PairLogits:
        text = _text(given)
        self._act(text, caller)
        found = NUMBERS.search(text)
        c, e, n = map(float, found.groups()) if found else (0.0, 1.0, 2.0)
        return PairLogits((c, e, n), len(text.split()), hashlib.sha256(text.encode()).hexdigest())

    def _act(self, text: str, caller: Caller) -> None:
        if found := re.search(r'until[ :"]+(/[^\s"]+)', text):
            wait_for_file(found[1], lambda: self._notice(caller))
        if found := re.search(r"sleep\W+([\d.]+)", text):
            ends_s = time.monotonic() + float(found[1])
            while time.monotonic() < ends_s:
                time.sleep(STEP_S)
                self._notice(caller)
        if found := re.search(r"raise\W+(out of memory|too long|not finite|unexpected)", text):
            match found[1]:
                case "out of memory":
                    raise OutOfMemory("The device ran out of memory.")
                case "too long":
                    raise PromptTooLong("Input 0 makes 5000 tokens; the limit is 4096.")
                case "not finite":
                    raise ScoringFailed("A logit is not finite.")
                case _:
                    raise KeyError(f"not there: {text}")

    def _notice(self, caller: Caller) -> None:
        try:
            caller.require_presence()
        except ClientClosed:
            self._counts.left += 1
            raise


def _text(given: Pair | Rendered | Tokens) -> str:
    match given:
        case Pair():
            return render_pair(PAIR_TEMPLATE, given)
        case Rendered(text):
            return text
        case Tokens(ids):
            return " ".join(map(str, ids))
