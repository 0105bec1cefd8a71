"""What every engine's dialect must say and understand, and what both engines say alike.

Pure: knows nothing of connections, of which server is asked, or of where a prompt comes from.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from semif_bento.remote.reading import Logits, list_of, malformed, member, parse


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

    def ask_classes(self, model: str, inputs: Sequence[Sequence[int]]) -> Ask:
        """Ask for the head's raw logits of every input of token ids."""
        ...

    def read_classes(self, answer: bytes, inputs: int) -> tuple[Logits, ...]:
        """Return the three logits of each of so many inputs, in the order they were asked.

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
