"""The straight line of a remote call: encode → one HTTP call to the state's server → slot scores.

Knows nothing of HTTP's details, of calibration, or of how an engine computes. Thread-safe.
"""

import math
import time
from collections.abc import Callable, Sequence

from semif_bento.caller import Caller
from semif_bento.decisions import (
    Decision,
    DirectOutcome,
    EngineStatus,
    ModelIdentity,
    ScoreRequest,
    Scores,
    SharedOutcome,
    SharedTiming,
)
from semif_bento.engine.letters.encoding import EncodedDecision, EncodedRequest, Encoder
from semif_bento.protocol import PROBABILITY_STATUS, prompt_version, softmax
from semif_bento.remote.dialect import Dialect, Reading
from semif_bento.remote.fleet import Fleet
from semif_bento.remote.loop import BackgroundLoop


class RemoteScorer:
    """Scores decisions with the servers of one engine; built and proven by `startup`.

    Args:
        engine: the engine and its version, as answers name it.
        model: the name that the servers serve the model by.
        prime_tokens: a state that several decisions share is sent alone first when it has so many
            tokens or more; 0 for never.
        status: what the whole process reports.
    """

    name = "letters"
    probability_status = PROBABILITY_STATUS

    def __init__(
        self,
        *,
        identity: ModelIdentity,
        engine: str,
        model: str,
        encoder: Encoder,
        dialect: Dialect,
        fleet: Fleet,
        loop: BackgroundLoop,
        prime_tokens: int,
        status: Callable[[], EngineStatus],
    ) -> None:
        self.identity = identity
        self.slot_count = len(encoder.slot_ids)
        self.most_options = len(encoder.wide_slots.ids)
        self.direct_readout = self.shared_readout = (
            "log-probabilities, over the whole vocabulary, of the declared answer slots at the "
            f"last position, by {engine}"
        )
        self.serving_config = f"remote-{dialect.name}-v1"
        self.status = status
        self._model, self._encoder, self._dialect = model, encoder, dialect
        self._fleet, self._loop, self._prime_tokens = fleet, loop, prime_tokens

    def prompt_version(self, options: int) -> str:
        """Return the version of the prompt that so many options make."""
        return prompt_version(options)

    def check(self, request: ScoreRequest) -> None:
        """Refuse nothing: what can be refused takes the tokenizer."""

    def direct(self, request: ScoreRequest, caller: Caller | None = None) -> DirectOutcome:
        """Score the only decision of `request` by one call.

        A caller who leaves closes the call's connection, which stops the engine.

        Raises:
            InvalidRequest: the prompt is over the token limit, its text cannot be encoded, or it
                has more options than slots; no server was asked.
            Overloaded: the engine's queue is full.
            EngineFault: no server can be asked, or an answer must not be believed.
            ScoringTimeout: the engine did not answer in time.
            ClientClosed: the caller left.
        """
        started = time.perf_counter()
        encoded = self._encoder.encode(request)
        asked_at = time.perf_counter()
        (reading,) = self._ask(encoded, caller or Caller())
        ended = time.perf_counter()
        return DirectOutcome(
            scores=_scores(request, 0, encoded, reading),
            forward_seconds=ended - asked_at,
            total_seconds=ended - started,
        )

    def shared(self, request: ScoreRequest, caller: Caller | None = None) -> SharedOutcome:
        """Score every decision of `request` by one call; the engine shares what they share.

        Before it, a state that is worth it is sent alone, so that the engine has it when the
        decisions come.

        Raises:
            The same as `direct`.
        """
        started = time.perf_counter()
        encoded = self._encoder.encode(request)
        encoded_at = time.perf_counter()
        caller = caller or Caller()
        is_primed = self._prime(encoded, caller)
        primed_at = time.perf_counter()
        readings = self._ask(encoded, caller)
        ended = time.perf_counter()
        prefix_tokens = len(encoded.prefix_ids)
        suffix_tokens = sum(len(decision.suffix_ids) for decision in encoded.decisions)
        return SharedOutcome(
            scores=tuple(
                _scores(request, index, encoded, reading) for index, reading in enumerate(readings)
            ),
            timing=SharedTiming(
                total_seconds=ended - started,
                encode_seconds=encoded_at - started,
                prefix_tokens=prefix_tokens,
                # Without a call of its own, the engine does not tell it apart.
                prefill_seconds=primed_at - encoded_at if is_primed else 0.0,
                replicate_seconds=0.0,
                suffix_forward_seconds=ended - primed_at,
                batch_size=len(request.decisions),
                true_suffix_tokens=suffix_tokens,
                padded_suffix_tokens=suffix_tokens,
                branch_groups=2 if is_primed else 1,
                cache_hit=_is_hit(readings, prefix_tokens),
            ),
            serving_config=self.serving_config,
        )

    def _prime(self, encoded: EncodedRequest, caller: Caller) -> bool:
        """Send the state alone where that is wanted; tell whether it was."""
        tokens, limit = len(encoded.prefix_ids), self._prime_tokens
        if not limit or tokens < limit or len(encoded.decisions) == 1:
            return False
        slot_ids = encoded.decisions[0].slot_ids[:1]  # whatever is asked, the state is read
        self._call(encoded, [encoded.prefix_ids], slot_ids, caller)
        return True

    def _ask(self, encoded: EncodedRequest, caller: Caller) -> tuple[Reading, ...]:
        """Return a reading for every decision, of the widest one's slots."""
        prompts = [encoded.whole(index) for index in range(len(encoded.decisions))]
        return self._call(encoded, prompts, _widest(encoded.decisions), caller)

    def _call(
        self,
        encoded: EncodedRequest,
        prompts: Sequence[Sequence[int]],
        slot_ids: Sequence[int],
        caller: Caller,
    ) -> tuple[Reading, ...]:
        """Ask the state's server for the slots after every prompt."""
        ask = self._dialect.ask_scores(self._model, prompts, slot_ids)
        work = self._fleet.ask(
            encoded.cache_key(),
            ask,
            lambda answer: self._dialect.read_scores(answer, len(prompts), slot_ids),
        )
        return self._loop.run(work, caller)


def _widest(decisions: Sequence[EncodedDecision]) -> tuple[int, ...]:
    """Return the slots that hold every decision's own as their beginning."""
    return max((decision.slot_ids for decision in decisions), key=len)


def _scores(request: ScoreRequest, index: int, encoded: EncodedRequest, reading: Reading) -> Scores:
    decision: Decision = request.decisions[index]
    row = encoded.decisions[index]
    logprobs = reading.logprobs[: len(row.slot_ids)]
    mass = min(1.0, math.fsum(map(math.exp, logprobs)))
    return Scores(
        decision_id=decision.id,
        option_ids=tuple(option.id for option in decision.options),
        option_logits=logprobs,
        probabilities=softmax(logprobs),
        input_tokens=len(encoded.prefix_ids) + len(row.suffix_ids),
        prompt_sha256=row.prompt_sha256,
        letter_mass=mass if request.diagnostics else None,
    )


def _is_hit(readings: Sequence[Reading], prefix_tokens: int) -> bool:
    """Tell whether the engine says that every prompt found half of the prefix or more cached."""
    cached = [reading.cached_tokens for reading in readings]
    return all(count is not None and 2 * count >= prefix_tokens for count in cached)
