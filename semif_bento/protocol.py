"""The prompt protocol `direct-options-v1` and its wide form: constants, payload, letters, softmax.

Knows nothing of tokenizers, tensors or HTTP. Source of the constants: SemIf at commit
23cf1f39fc9534fe81437200959b6dfc7106e45a (MIT), as `fastjev._runtime.core` ships them. They are
protocol data: one changed byte is another protocol and another hash.
"""

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from itertools import product
from string import ascii_uppercase

from semif_bento.decisions import Decision, JsonState

SEMIF_COMMIT = "23cf1f39fc9534fe81437200959b6dfc7106e45a"
PROMPT_VERSION = "direct-options-v1"
LETTERS = "ABCDEFGHIJKLMNOP"
MIN_OPTIONS, MAX_OPTIONS = 2, len(LETTERS)

# More options than letters: the same prompt, lettered A to Z and on with two-letter tokens. Which
# ones, the engine finds on the loaded tokenizer.
WIDE_PROMPT_VERSION = "direct-options-wide-v1"
MAX_WIDE_OPTIONS = 255
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
"""Logit gap (nats) up to which the top two options count as tied, by dtype: the largest change seen
between cached and fresh scoring of one row (0.25 in bfloat16, 2e-5 in float32), rounded up."""


def render_evidence(state: JsonState) -> str:
    """Return the payload up to and with the criterion edge; it depends on the state alone."""
    return json.dumps({"evidence": state}, ensure_ascii=False)[:-1] + CRITERION_EDGE


def prompt_version(option_count: int) -> str:
    """Return the version of the prompt that this many options make."""
    return PROMPT_VERSION if option_count <= MAX_OPTIONS else WIDE_PROMPT_VERSION


def wide_letters() -> Iterator[str]:
    """Yield what may letter an option of a wide prompt, in order: A to Z, then AA to ZZ."""
    yield from ascii_uppercase
    yield from map("".join, product(ascii_uppercase, repeat=2))


def render_decision(decision: Decision, letters: Sequence[str] = LETTERS) -> str:
    """Return the rest of the payload after the criterion edge: question, lettered options.

    Raises:
        ValueError: there are more options than letters.
    """
    options = decision.options
    rest = {
        "criterion": decision.question,
        "options": [
            {"letter": letter, "description": option.description}
            for letter, option in zip(letters[: len(options)], options, strict=True)
        ],
    }
    return json.dumps(rest, ensure_ascii=False).removeprefix('{"criterion":')


def render_payload(state: JsonState, decision: Decision, letters: Sequence[str] = LETTERS) -> str:
    """Return the whole user turn: exactly `json.dumps` of evidence, criterion and options.

    Raises:
        ValueError: there are more options than letters.
    """
    return render_evidence(state) + render_decision(decision, letters)


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


def margin(probabilities: Sequence[float]) -> float:
    """Return the highest probability less the second, in 0..1, of at least two."""
    first, second = sorted(probabilities, reverse=True)[:2]
    return first - second


def is_near_tie(option_logits: Sequence[float], dtype: str) -> bool:
    """Tell whether the two highest logits are as close as the noise of a data type."""
    first, second = sorted(option_logits, reverse=True)[:2]
    return first - second <= NEAR_TIE_LOGITS[dtype]
