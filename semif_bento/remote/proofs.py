"""What must hold of every server before it is asked, at the start and when it comes back.

Knows nothing of settings or of which requests are routed where. It does not guard the revision of
the weights: no engine tells it. Servers that agree with each other may be wrong together.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from transformers import PreTrainedTokenizerFast

from semif_bento.decisions import Decision, JsonState, Option, ScoreRequest
from semif_bento.engine.encoding import Encoder, render_prompt
from semif_bento.errors import EngineFault, RequestError, StartupError
from semif_bento.protocol import LETTERS, NEAR_TIE_LOGITS
from semif_bento.remote.dialect import (
    Dialect,
    ask_models,
    ask_tokens,
    read_models,
    read_tokens,
    read_version,
)
from semif_bento.remote.server import HEALTH, Server

PROOF_TIMEOUT_S = 120.0
"""For one call of a proof: an engine's first read of log-probabilities may compile for 20 s."""

_YES_NO = (Option("yes", "The deployment succeeded."), Option("no", "It did not succeed."))
_SHORT = Decision("short", "Is there evidence that the deployment succeeded?", _YES_NO)
_LONG = Decision(
    "long",
    "(1) Which of these statements does the evidence establish, if any?",
    tuple(Option(letter, f"Health checks passed in zone {letter}.") for letter in LETTERS),
)
_STATES: tuple[JsonState, ...] = (
    "The deployment completed at 14:02 UTC. Health checks passed in all three zones.",
    {"person_said": "ok :)", "größe": ["é中🙂", 12.5, None]},
)


@dataclass(frozen=True, slots=True)
class Probe:
    """A prompt as text and as token ids, and the slots that are read after it."""

    text: str
    ids: tuple[int, ...]
    slot_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Findings:
    """What one server gave: its version, and the log-probabilities of every probe's slots."""

    version: str
    logprobs: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class Expectation:
    """What is asked of every server.

    `max_tokens` is the longest prompt that it must take, `dtype` what it computes in; the probes
    come in lists that are asked in one call each.
    """

    dialect: Dialect
    model: str
    max_tokens: int
    dtype: str
    probes: tuple[tuple[Probe, ...], ...]


def make_probes(
    tokenizer: PreTrainedTokenizerFast, encoder: Encoder
) -> tuple[tuple[Probe, ...], ...]:
    """Return probes of two to sixteen options, and one of the most options there are slots for."""
    letters = encoder.wide_slots.letters
    wide = Decision("wide", "Which?", tuple(Option(letter, letter) for letter in letters))
    narrow = [(state, decision) for state in _STATES for decision in (_SHORT, _LONG)]
    probes = tuple(_probe(tokenizer, encoder, *row, LETTERS) for row in narrow)
    return probes, (_probe(tokenizer, encoder, _STATES[0], wide, letters),)


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
    probe, and that every slot is read.

    Raises:
        StartupError: one of them does not hold.
        Overloaded, ScoringTimeout: it cannot be told now.
    """
    try:
        await server.fetch(HEALTH, PROOF_TIMEOUT_S)
        await _require_model(server, expected)
        await _require_tokens(server, expected)
        version = read_version(await server.fetch(expected.dialect.ask_version(), PROOF_TIMEOUT_S))
        logprobs: list[tuple[float, ...]] = []
        for probes in expected.probes:
            logprobs += await _score(server, expected, probes)
    except EngineFault as fault:
        raise StartupError(f"{server.name}: {fault.message}") from None
    return Findings(version, tuple(logprobs))


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
        for row, other_row in zip(found.logprobs, reference.logprobs, strict=True)
        for one, other in zip(row, other_row, strict=True)
    )
    if distance > tolerance:
        raise StartupError(
            f"{name} gives log-probabilities that differ by {distance:.3g} from another server's "
            f"(allowed in {dtype}: {tolerance:g}); do they serve the same weights?"
        )


def _probe(
    tokenizer: PreTrainedTokenizerFast,
    encoder: Encoder,
    state: JsonState,
    decision: Decision,
    letters: Sequence[str],
) -> Probe:
    encoded = encoder.encode(ScoreRequest(state, (decision,)))
    text = render_prompt(tokenizer, state, decision, letters)
    return Probe(text, encoded.whole(0), encoded.decisions[0].slot_ids)


async def _require_model(server: Server, expected: Expectation) -> None:
    served = read_models(await server.fetch(ask_models(), PROOF_TIMEOUT_S))
    model = next((model for model in served if model.name == expected.model), None)
    if model is None:
        names = ", ".join(model.name for model in served) or "nothing"
        raise StartupError(
            f"{server.name} serves {names}, not {expected.model}; SEMIF_BACKEND_MODEL names it."
        )
    if model.max_tokens is not None and model.max_tokens <= expected.max_tokens:
        raise StartupError(
            f"{server.name} takes {model.max_tokens} tokens, prompt and answer; SEMIF_MAX_TOKENS "
            f"is {expected.max_tokens} and needs one more."
        )


async def _require_tokens(server: Server, expected: Expectation) -> None:
    for probe in (probe for probes in expected.probes for probe in probes):
        ask = ask_tokens(expected.model, probe.text)
        if read_tokens(await server.fetch(ask, PROOF_TIMEOUT_S)) != probe.ids:
            raise StartupError(f"{server.name} has another tokenizer than SEMIF_MODEL.")


async def _score(
    server: Server, expected: Expectation, probes: Sequence[Probe]
) -> list[tuple[float, ...]]:
    widest = max((probe.slot_ids for probe in probes), key=len)
    ask = expected.dialect.ask_scores(expected.model, [probe.ids for probe in probes], widest)
    answer = await server.fetch(ask, PROOF_TIMEOUT_S)
    readings = expected.dialect.read_scores(answer, len(probes), widest)
    return [reading.logprobs for reading in readings]
