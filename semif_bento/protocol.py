"""The prompt protocol `direct-options-v1`: constants, payload text, letters, softmax, hash.

Knows nothing of tokenizers, tensors or HTTP. Source of the constants: SemIf at commit
23cf1f39fc9534fe81437200959b6dfc7106e45a (MIT), as `fastjev._runtime.core` ships them. They are
protocol data: one changed byte is another protocol and another hash.
"""

import hashlib
import json
import math
from collections.abc import Sequence

from semif_bento.decisions import Decision, JsonState

SEMIF_COMMIT = "23cf1f39fc9534fe81437200959b6dfc7106e45a"
PROMPT_VERSION = "direct-options-v1"
LETTERS = "ABCDEFGHIJKLMNOP"
MIN_OPTIONS, MAX_OPTIONS = 2, len(LETTERS)
SYSTEM_TEXT = (
    "Apply the supplied criterion to the supplied evidence. Choose exactly one listed option. "
    "Respond with only its uppercase letter, with no explanation or reasoning."
)
PROBABILITY_STATUS = "conditional option score; uncalibrated as decision confidence"
DIRECT_READOUT = "native last-position logits of the declared answer slots"
SHARED_READOUT = "native last-suffix-position logits of the declared answer slots"

# The evidence text plus this edge is the shared part of a payload. It ends at a pre-token border
# of byte-level BPE tokenizers, so both sides can be encoded apart; the engine proves that on the
# loaded tokenizer instead of trusting it.
CRITERION_EDGE = ', "criterion":'

NEAR_TIE_LOGITS = {"bfloat16": 0.25, "float16": 0.03125, "float32": 1e-3}
"""Logit gap (nats) up to which the top two options count as tied, by dtype: the largest change
seen between cached and fresh scoring of the same row (0.25 in bf16, 2e-5 in float32, rounded up)."""


def render_evidence(state: JsonState) -> str:
    """Return the payload's text up to and with the criterion edge; it depends on the state alone."""
    return json.dumps({"evidence": state}, ensure_ascii=False)[:-1] + CRITERION_EDGE


def render_decision(decision: Decision) -> str:
    """Return the rest of the payload after the criterion edge: question, lettered options."""
    rest = {
        "criterion": decision.question,
        "options": [
            {"letter": letter, "description": option.description}
            for letter, option in zip(LETTERS, decision.options, strict=False)
        ],
    }
    return json.dumps(rest, ensure_ascii=False).removeprefix('{"criterion":')


def render_payload(state: JsonState, decision: Decision) -> str:
    """Return the whole user turn: exactly `json.dumps` of evidence, criterion and options."""
    return render_evidence(state) + render_decision(decision)


def prompt_sha256(prompt: str) -> str:
    """Return the SHA-256 of the rendered prompt in UTF-8 as 64 hex digits."""
    return hashlib.sha256(prompt.encode()).hexdigest()


def softmax(logits: Sequence[float], temperature: float = 1.0) -> tuple[float, ...]:
    """Return softmax(logits / temperature) in the order given.

    Args:
        logits: at least one finite number (nats).
        temperature: finite and above 0; 1 leaves the logits as they are.

    Returns:
        Probabilities in 0..1 whose sum is 1 up to rounding.
    """
    top = max(logits)
    weights = [math.exp((logit - top) / temperature) for logit in logits]
    total = math.fsum(weights)
    return tuple(weight / total for weight in weights)
