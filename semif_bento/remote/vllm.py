"""vLLM's dialect: completions of one token with log-probabilities of given ids, and classes.

Pure: knows nothing of connections. As of vLLM 0.32.
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


class VllmDialect:
    """How vLLM's OpenAI server is asked and understood."""

    name = "vllm"
    most_ids = 128  # it answers 400 to more

    def ask_scores(self, model: str, prompts: Sequence[Sequence[int]], ids: Sequence[int]) -> Ask:
        """Ask for the log-probabilities of `ids` after every prompt of token ids."""
        return to_ask(
            "/v1/completions",
            {
                "model": model,
                "prompt": prompts,
                "max_tokens": 1,
                "temperature": 0,
                "logprobs": 1,  # without it the ids are not read
                "logprob_token_ids": ids,
                "return_tokens_as_token_ids": True,
            },
        )

    def read_scores(self, answer: bytes, prompts: int, ids: Sequence[int]) -> tuple[Reading, ...]:
        """Return a reading for each of so many prompts, in the order they were asked.

        The token that was sampled may stand beside the ids that were asked for.

        Raises:
            EngineFault: the answer does not hold exactly that, or a number is not plausible.
        """
        found = _by_index(list_of(member(parse(answer), "choices")), prompts)
        return tuple(_reading(choice, ids) for choice in found)

    def ask_classes(self, model: str, inputs: Sequence[Sequence[int]]) -> Ask:
        """Ask a pooling server for the head's raw logits of every input of token ids."""
        return to_ask("/classify", {"model": model, "input": inputs, "use_activation": False})

    def read_classes(self, answer: bytes, inputs: int) -> tuple[Logits, ...]:
        """Return the three logits of each of so many inputs, in the order they were asked.

        They stand under `probs`, which is what they would be with the activation.

        Raises:
            EngineFault: the answer does not hold exactly that, or a number is not plausible.
        """
        found = _by_index(list_of(member(parse(answer), "data")), inputs)
        return tuple(plausible_logits(member(entry, "probs")) for entry in found)

    def ask_version(self) -> Ask:
        """Ask which version of the engine this is."""
        return Ask("/version")


def _by_index(entries: Sequence[object], count: int) -> list[object]:
    """Return entries by their index, which must be 0 to `count` less 1."""
    require_count(len(entries), count)
    found = {member(entry, "index"): entry for entry in entries}
    if not all(isinstance(index, int) for index in found):
        raise malformed()
    require_count(len(set(range(count)) & found.keys()), count)
    return [found[index] for index in range(count)]


def _reading(choice: object, ids: Sequence[int]) -> Reading:
    positions = list_of(member(member(choice, "logprobs"), "top_logprobs"))
    require_count(len(positions), 1)
    named = positions[0]
    found = {token_id: member(named, f"token_id:{token_id}", None) for token_id in ids}
    return Reading(plausible(found, ids))
