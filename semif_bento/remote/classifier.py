"""The straight line of a remote classification: encode → one call a server → three logits each.

Knows nothing of HTTP's details, of options or decisions, or of how an engine computes. Thread-safe.
"""

import time
from array import array
from collections import defaultdict
from collections.abc import Callable, Sequence

from semif_bento.caller import Caller
from semif_bento.decisions import EngineStatus, ModelIdentity
from semif_bento.engine.nli.encoding import EncodedInput, Input, PairEncoder
from semif_bento.entailment import ClassifyOutcome, ClassifyTiming, PairLogits
from semif_bento.remote.dialect import Dialect
from semif_bento.remote.fleet import Call, Fleet
from semif_bento.remote.loop import BackgroundLoop
from semif_bento.remote.reading import Logits


class RemoteClassifier:
    """Classifies inputs with the servers of one engine; built and proven by `startup`.

    Args:
        model: the name that the servers serve the model by.
        status: what the whole process reports.
    """

    def __init__(
        self,
        *,
        identity: ModelIdentity,
        model: str,
        encoder: PairEncoder,
        dialect: Dialect,
        fleet: Fleet,
        loop: BackgroundLoop,
        status: Callable[[], EngineStatus],
    ) -> None:
        self.identity = identity
        self.template = encoder.template
        self.serving_config = f"nli-remote-{dialect.name}-v1"
        self.status = status
        self._model, self._encoder, self._dialect = model, encoder, dialect
        self._fleet, self._loop = fleet, loop

    def classify(self, inputs: Sequence[Input], caller: Caller | None = None) -> ClassifyOutcome:
        """Return the logits of every input.

        Inputs that are equal are asked once, and inputs of one premise go to one server. A caller
        who leaves closes the calls' connections, which stops the engine.

        Raises:
            PromptTooLong: an input is over the token limit; no server was asked.
            InvalidRequest: a text cannot be encoded, or an id is not one of the model's.
            Overloaded: an engine's queue is full.
            EngineFault: no server can be asked, or an answer must not be believed.
            ScoringTimeout: an engine did not answer in time.
            ClientClosed: the caller left.
        """
        started = time.perf_counter()
        encoded = self._encoder.encode(inputs)
        distinct = list({given.tokens_sha256: given for given in encoded}.values())
        asked_at = time.perf_counter()
        logits, calls = self._ask(distinct, caller or Caller())
        ended = time.perf_counter()
        distinct_tokens = sum(given.length for given in distinct)
        return ClassifyOutcome(
            tuple(
                PairLogits(logits[given.tokens_sha256], given.length, given.tokens_sha256)
                for given in encoded
            ),
            ClassifyTiming(
                total_seconds=ended - started,
                encode_seconds=asked_at - started,
                prefill_seconds=0.0,
                forward_seconds=ended - asked_at,
                input_tokens=sum(given.length for given in encoded),
                prefix_tokens=0,  # what the engine shares, it does not tell
                cached_tokens=0,
                suffix_tokens=distinct_tokens,
                padded_tokens=distinct_tokens,
                groups=calls,
            ),
        )

    def _ask(
        self, distinct: Sequence[EncodedInput], caller: Caller
    ) -> tuple[dict[str, Logits], int]:
        """Return the logits by the inputs' hash, and how many calls they took."""
        groups: dict[str, list[EncodedInput]] = defaultdict(list)
        for given in distinct:
            groups[self._fleet.home(_key(given))].append(given)
        work = self._fleet.ask_all([self._call(group) for group in groups.values()])
        answers = self._loop.run(work, caller)
        found = {
            given.tokens_sha256: row
            for group, rows in zip(groups.values(), answers, strict=True)
            for given, row in zip(group, rows, strict=True)
        }
        return found, len(groups)

    def _call(self, group: Sequence[EncodedInput]) -> Call[tuple[Logits, ...]]:
        ask = self._dialect.ask_classes(
            self._model, [given.prefix_ids + given.suffix_ids for given in group]
        )
        count = len(group)
        return Call(_key(group[0]), ask, lambda answer: self._dialect.read_classes(answer, count))


def _key(given: EncodedInput) -> bytes:
    """Return what decides about the server: the premise, or the whole input without one."""
    return array("I", given.prefix_ids or given.suffix_ids).tobytes()
