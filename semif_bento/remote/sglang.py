"""SGLang's dialect: generation of one token with log-probabilities of given ids, and classes.

Pure: knows nothing of connections. As of SGLang 0.5.23, read from its source and never run here.
"""

from collections.abc import Sequence

from semif_bento.remote.dialect import Ask, Reading, to_ask
from semif_bento.remote.reading import (
    Logits,
    list_of,
    malformed,
    member,
    parse,
    plausible,
    plausible_logits,
    require_count,
)


class SglangDialect:
    """How SGLang's server is asked and understood."""

    name = "sglang"
    most_ids = None

    def ask_scores(self, model: str, prompts: Sequence[Sequence[int]], ids: Sequence[int]) -> Ask:
        """Ask for the log-probabilities of `ids` after every prompt of token ids.

        The route has no name of a model; the proofs at start and return compare it.
        """
        return to_ask(
            "/generate",
            {
                "input_ids": prompts,
                "sampling_params": {"max_new_tokens": 1, "temperature": 0},
                "return_logprob": True,
                "logprob_start_len": -1,
                "token_ids_logprob": ids,  # of every prompt; a batch of asked and not asked crashes
            },
        )

    def read_scores(self, answer: bytes, prompts: int, ids: Sequence[int]) -> tuple[Reading, ...]:
        """Return a reading for each of so many prompts, in the order they were asked.

        Raises:
            EngineFault: the answer does not hold exactly that, or a number is not plausible.
        """
        outputs = list_of(parse(answer))
        require_count(len(outputs), prompts)
        return tuple(_reading(member(output, "meta_info"), ids) for output in outputs)

    def ask_classes(self, model: str, inputs: Sequence[Sequence[int]]) -> Ask:
        """Ask for the head's raw logits of every input of token ids.

        Its `/v1/classify` is not asked: that one turns an error into a class of probability 1.
        """
        return to_ask("/classify", {"input_ids": inputs})

    def read_classes(self, answer: bytes, inputs: int) -> tuple[Logits, ...]:
        """Return the three logits of each of so many inputs, in the order they were asked.

        Raises:
            EngineFault: the answer does not hold exactly that, or a number is not plausible.
        """
        outputs = list_of(parse(answer))
        require_count(len(outputs), inputs)
        return tuple(plausible_logits(member(output, "embedding")) for output in outputs)

    def ask_version(self) -> Ask:
        """Ask which version of the engine this is."""
        return Ask("/server_info")


def _reading(told: object, ids: Sequence[int]) -> Reading:
    positions = list_of(member(told, "output_token_ids_logprobs"))
    require_count(len(positions), 1)
    found = dict(map(_pair, list_of(positions[0])))
    cached = member(told, "cached_tokens", None)
    return Reading(plausible(found, ids), cached if isinstance(cached, int) else None)


def _pair(entry: object) -> tuple[int, object]:
    """Return id and log-probability of `[logprob, id, text or null]`."""
    match entry:
        case [value, int(token_id), *_]:
            return token_id, value
    raise malformed()
