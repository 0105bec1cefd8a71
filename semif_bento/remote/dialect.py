"""What every engine's dialect must say and understand, and what no answer of any may hold.

Pure: knows nothing of connections, of which server is asked, or of where a prompt comes from.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from semif_bento.errors import EngineFault

LEAST_LOGPROB = -1000.0
"""What is under it is a placeholder (-9999, -1e30): logits of real models lie closer together."""

MASS_TOLERANCE = 0.01
"""How far rounding may carry a log-probability over 0, or a sum of probabilities over 1."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One HTTP request: a path below the server's base URL; a POST of JSON where it has a body."""

    path: str
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """One prompt's answer.

    `logprobs` are natural logarithms of probabilities over the whole vocabulary, in the order the
    ids were asked for. `cached_tokens` of the prompt came from the engine's prefix cache; None
    where the engine doesn't tell.
    """

    logprobs: tuple[float, ...]
    cached_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model as a server lists it; `max_tokens` (prompt and answer) is None where not told."""

    name: str
    max_tokens: int | None


class Dialect(Protocol):
    """How one engine is asked and understood."""

    @property
    def name(self) -> str:
        """The engine's, as SEMIF_BACKEND has it."""
        ...

    @property
    def most_ids(self) -> int | None:
        """How many ids it reads at one position; None for no limit."""
        ...

    def ask_scores(self, model: str, prompts: Sequence[Sequence[int]], ids: Sequence[int]) -> Ask:
        """Ask for the log-probabilities of `ids` after every prompt of token ids."""
        ...

    def read_scores(self, answer: bytes, prompts: int, ids: Sequence[int]) -> tuple[Reading, ...]:
        """Return a reading for each of so many prompts, in the order they were asked.

        Raises:
            EngineFault: the answer does not hold exactly that, or a number is not plausible.
        """
        ...

    def ask_version(self) -> Ask:
        """Ask which version of the engine this is."""
        ...


def to_ask(path: str, body: Mapping[str, object]) -> Ask:
    """Return a POST of a body as compact JSON."""
    return Ask(path, json.dumps(body, separators=(",", ":")).encode())


def ask_models() -> Ask:
    """Ask which models are served; both engines answer as OpenAI does."""
    return Ask("/v1/models")


def read_models(answer: bytes) -> tuple[ServedModel, ...]:
    """Return the models that a server lists.

    Raises:
        EngineFault: the answer is not such a list.
    """
    models = []
    for entry in list_of(member(parse(answer), "data")):
        name, max_tokens = member(entry, "id"), member(entry, "max_model_len", None)
        if not isinstance(name, str):
            raise malformed()
        models.append(ServedModel(name, max_tokens if isinstance(max_tokens, int) else None))
    return tuple(models)


def ask_tokens(model: str, text: str) -> Ask:
    """Ask for the token ids of a text, nothing added; both engines take the same request."""
    return to_ask("/tokenize", {"model": model, "prompt": text, "add_special_tokens": False})


def read_tokens(answer: bytes) -> tuple[int, ...]:
    """Return token ids.

    Raises:
        EngineFault: the answer holds none.
    """
    told = list_of(member(parse(answer), "tokens"))
    ids = tuple(token_id for token_id in told if isinstance(token_id, int))
    if len(ids) != len(told):
        raise malformed()
    return ids


def read_version(answer: bytes) -> str:
    """Return the engine's version.

    Raises:
        EngineFault: the answer holds none.
    """
    version = member(parse(answer), "version")
    if not isinstance(version, str) or not version.isprintable() or not 0 < len(version) < 100:
        raise malformed()
    return version


def plausible(found: Mapping[int, object], ids: Sequence[int]) -> tuple[float, ...]:
    """Return what was found for each id, in the order asked.

    Raises:
        EngineFault: an id is missing, a number is not finite, or they are no log-probabilities:
            one over 0, one that is a placeholder, or probabilities that sum to more than 1.
    """
    logprobs = tuple(_number(found, token_id) for token_id in ids)
    if not all(map(math.isfinite, logprobs)):
        raise EngineFault("An engine server gave a number that is not finite.", kind="not_finite")
    is_each = all(LEAST_LOGPROB < value <= MASS_TOLERANCE for value in logprobs)
    if not is_each or math.fsum(map(math.exp, logprobs)) > 1 + MASS_TOLERANCE:
        raise EngineFault(
            "An engine server gave numbers that are no log-probabilities.", kind="implausible"
        )
    return logprobs


def _number(found: Mapping[int, object], token_id: int) -> float:
    value = found.get(token_id)
    if value is None:
        raise EngineFault("An engine server left out an answer slot.", kind="missing_ids")
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise malformed()
    return float(value)


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


REQUIRED = object()


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
