"""What can be read of an engine's answer, and what no answer of any engine may hold.

Pure: knows nothing of which engine answered. Whatever it refuses is an EngineFault; no message
repeats anything of the answer.
"""

import json
import math
from collections.abc import Mapping, Sequence

from semif_bento.errors import EngineFault

LEAST_LOGPROB = -1000.0
"""What is under it is a placeholder (-9999, -1e30): logits of real models lie closer together."""

MASS_TOLERANCE = 0.01
"""How far rounding may carry a log-probability over 0, or a sum of probabilities over 1."""

REQUIRED = object()

Logits = tuple[float, float, float]
"""What an NLI head says of one input, in the order of its labels."""


def plausible(found: Mapping[int, object], ids: Sequence[int]) -> tuple[float, ...]:
    """Return what was found for each id, in the order asked.

    Raises:
        EngineFault: an id is missing, a number is not finite, or they are no log-probabilities:
            one over 0, one that is a placeholder, or probabilities that sum to more than 1.
    """
    logprobs = tuple(_number(found, token_id) for token_id in ids)
    is_each = all(LEAST_LOGPROB < value <= MASS_TOLERANCE for value in logprobs)
    if not is_each or math.fsum(map(math.exp, logprobs)) > 1 + MASS_TOLERANCE:
        raise EngineFault(
            "An engine server gave numbers that are no log-probabilities.", kind="implausible"
        )
    return logprobs


def plausible_logits(value: object) -> Logits:
    """Return an NLI head's logits.

    Raises:
        EngineFault: they are not three finite numbers below a thousand. One class of probability 1
            is how a server hides an error.
    """
    numbers = list_of(value)
    require_count(len(numbers), 3)
    first, second, third = map(_finite, numbers)
    if max(abs(first), abs(second), abs(third)) >= -LEAST_LOGPROB:
        raise EngineFault("An engine server gave numbers that are no logits.", kind="implausible")
    return first, second, third


def _finite(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise malformed()
    if not math.isfinite(value):
        raise EngineFault("An engine server gave a number that is not finite.", kind="not_finite")
    return float(value)


def _number(found: Mapping[int, object], token_id: int) -> float:
    value = found.get(token_id)
    if value is None:
        raise EngineFault("An engine server left out an answer slot.", kind="missing_ids")
    return _finite(value)


def require_count(found: int, asked: int) -> None:
    """Refuse answers that are not as many as the prompts.

    Raises:
        EngineFault: they are not.
    """
    if found != asked:
        raise EngineFault("An engine server gave too few or too many answers.", kind="wrong_count")


def parse(answer: bytes) -> object:
    """Return parsed JSON.

    Raises:
        EngineFault: it is none.
    """
    try:
        return json.loads(answer)
    except (ValueError, RecursionError):
        raise malformed() from None


def member(value: object, name: str, default: object = REQUIRED) -> object:
    """Return a member of a JSON object, or the default where one is given.

    Raises:
        EngineFault: it is no object, or has no such member and none may be missing.
    """
    if not isinstance(value, dict):
        raise malformed()
    found = value.get(name, default)
    if found is REQUIRED:
        raise malformed()
    return found


def list_of(value: object) -> list[object]:
    """Return a JSON array.

    Raises:
        EngineFault: it is none.
    """
    if not isinstance(value, list):
        raise malformed()
    return value


def malformed() -> EngineFault:
    """Return the fault of an answer that has not the engine's shape."""
    return EngineFault("An engine server gave an answer that cannot be read.", kind="malformed")
