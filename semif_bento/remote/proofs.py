"""What must hold of every server before it is asked, at the start and when it comes back.

Knows nothing of settings or of which requests are routed where. It does not guard the revision of
the weights: no engine tells it. Servers that agree with each other may be wrong together.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from semif_bento.errors import EngineFault, RequestError, StartupError
from semif_bento.protocol import NEAR_TIE_LOGITS
from semif_bento.remote.dialect import (
    Ask,
    ask_models,
    ask_tokens,
    read_models,
    read_tokens,
    read_version,
)
from semif_bento.remote.server import HEALTH, Server

PROOF_TIMEOUT_S = 120.0
"""For one call of a proof: an engine's first read of log-probabilities may compile for 20 s."""


@dataclass(frozen=True, slots=True)
class Findings:
    """What one server gave: its version, and the numbers of every trial."""

    version: str
    numbers: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class Trial:
    """One call whose answer every server must give alike: what is asked, and how it is read."""

    ask: Ask
    read: Callable[[bytes], Sequence[tuple[float, ...]]]


@dataclass(frozen=True, slots=True)
class Expectation:
    """What is asked of every server.

    `least_room` is how many tokens it must take, prompt and answer, `dtype` what it computes in;
    `texts` are texts with the token ids that it must find in them.
    """

    model: str
    least_room: int
    dtype: str
    ask_version: Ask
    texts: tuple[tuple[str, tuple[int, ...]], ...]
    trials: tuple[Trial, ...]


async def prove_all(servers: Sequence[Server], expected: Expectation) -> Findings:
    """Examine every server, prove that they agree, and return what the first one gave.

    Raises:
        StartupError: as `examine` and `require_same` raise it, of the first server that fails.
    """
    outcomes = await asyncio.gather(
        *(examine(server, expected) for server in servers), return_exceptions=True
    )
    reference: Findings | None = None
    for server, outcome in zip(servers, outcomes, strict=True):
        if isinstance(outcome, RequestError):
            raise StartupError(f"{server.name}: {outcome.message}")
        if isinstance(outcome, BaseException):
            raise outcome
        reference = reference or outcome
        require_same(server.name, outcome, reference, expected.dtype)
    if reference is None:
        raise StartupError("There is no engine server.")
    return reference


async def prove_again(server: Server, expected: Expectation, reference: Findings) -> None:
    """Prove that a server is still, or again, what it was proven to be.

    Raises:
        StartupError: it is not.
        RequestError: it cannot be told now: it is overloaded or does not answer in time.
    """
    require_same(server.name, await examine(server, expected), reference, expected.dtype)


async def examine(server: Server, expected: Expectation) -> Findings:
    """Prove one server and return what it gave. Its first scores are its warm-up.

    Guards health, the name of the model and the room for its prompts, the tokenizer's ids on every
    text, and that every trial can be read.

    Raises:
        StartupError: one of them does not hold.
        Overloaded, ScoringTimeout: it cannot be told now.
    """
    try:
        await server.fetch(HEALTH, PROOF_TIMEOUT_S)
        await _require_model(server, expected)
        await _require_tokens(server, expected)
        version = read_version(await server.fetch(expected.ask_version, PROOF_TIMEOUT_S))
        numbers: list[tuple[float, ...]] = []
        for trial in expected.trials:
            numbers += trial.read(await server.fetch(trial.ask, PROOF_TIMEOUT_S))
    except EngineFault as fault:
        raise StartupError(f"{server.name}: {fault.message}") from None
    return Findings(version, tuple(numbers))


def require_same(name: str, found: Findings, reference: Findings, dtype: str) -> None:
    """Refuse a server of another version, or whose scores differ by more than twice the noise.

    Raises:
        StartupError: it is one.
    """
    if found.version != reference.version:
        raise StartupError(
            f"{name} runs version {found.version}, another server {reference.version}."
        )
    tolerance = 2 * NEAR_TIE_LOGITS[dtype]
    distance = max(
        abs(one - other)
        for row, other_row in zip(found.numbers, reference.numbers, strict=True)
        for one, other in zip(row, other_row, strict=True)
    )
    if distance > tolerance:
        raise StartupError(
            f"{name} gives numbers that differ by {distance:.3g} from another server's "
            f"(allowed in {dtype}: {tolerance:g}); do they serve the same weights?"
        )


async def _require_model(server: Server, expected: Expectation) -> None:
    served = read_models(await server.fetch(ask_models(), PROOF_TIMEOUT_S))
    model = next((model for model in served if model.name == expected.model), None)
    if model is None:
        names = ", ".join(model.name for model in served) or "nothing"
        raise StartupError(
            f"{server.name} serves {names}, not {expected.model}; set what it is called there."
        )
    if model.max_tokens is not None and model.max_tokens < expected.least_room:
        raise StartupError(
            f"{server.name} takes {model.max_tokens} tokens; SEMIF_MAX_TOKENS needs "
            f"{expected.least_room} of it."
        )


async def _require_tokens(server: Server, expected: Expectation) -> None:
    for text, ids in expected.texts:
        answer = await server.fetch(ask_tokens(expected.model, text), PROOF_TIMEOUT_S)
        if read_tokens(answer) != ids:
            raise StartupError(f"{server.name} has another tokenizer than the model named here.")
