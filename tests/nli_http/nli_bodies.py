"""Settings and requests that the tests of the NLI routes share."""

import math
from collections.abc import Sequence
from typing import Any

NLI = {"SEMIF_NLI_MODEL": "scripted-nli", "SEMIF_NLI_REVISION": "r1"}
NO_LETTERS = {"SEMIF_MODEL": "none", "SEMIF_REVISION": ""}
MODEL = "scripted-nli@r1"

PAIR = {"premise": "It rained.", "hypothesis": "It was wet."}


def says(c: float, e: float, n: float) -> str:
    """A text for which the scripted classifier has these logits."""
    return f"logits {c} {e} {n}"


def option(name: str, *logits: float) -> dict[str, str]:
    return {"id": name, "description": says(*logits)}


def softmax(logits: Sequence[float]) -> list[float]:
    weights = [math.exp(logit - max(logits)) for logit in logits]
    return [weight / sum(weights) for weight in weights]


def entailment(*logits: float) -> float:
    return softmax(logits)[1]


DECISION: dict[str, Any] = {
    "id": "d",
    "question": "Is it wet?",
    "options": [option("no", 2, 0, 0), option("yes", 0, 3, 1), option("perhaps", 0, 0, 0)],
}
ENTAILED = [entailment(2, 0, 0), entailment(0, 3, 1), entailment(0, 0, 0)]
ROW = {**DECISION, "state": "It rained.", "engine": "nli"}
SHARED = {
    "state": "It rained.",
    "decisions": [DECISION, {**DECISION, "id": "e", "options": DECISION["options"][::-1]}],
    "engine": "nli",
}
