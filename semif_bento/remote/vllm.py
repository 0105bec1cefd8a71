"""vLLM's dialect: completions of one token, with log-probabilities of given ids.

Pure: knows nothing of connections. As of vLLM 0.32.
"""

from collections.abc import Sequence

from semif_bento.remote.dialect import (
    Ask,
    Reading,
    list_of,
    malformed,
    member,
    parse,
    plausible,
    require_count,
    to_ask,
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
        choices = list_of(member(parse(answer), "choices"))
        require_count(len(choices), prompts)
        found = {_index(choice): choice for choice in choices}
        require_count(len(set(range(prompts)) & found.keys()), prompts)
        return tuple(_reading(found[index], ids) for index in range(prompts))

    def ask_version(self) -> Ask:
        """Ask which version of the engine this is."""
        return Ask("/version")


def _index(choice: object) -> int:
    index = member(choice, "index")
    if not isinstance(index, int):
        raise malformed()
    return index


def _reading(choice: object, ids: Sequence[int]) -> Reading:
    positions = list_of(member(member(choice, "logprobs"), "top_logprobs"))
    require_count(len(positions), 1)
    named = positions[0]
    found = {token_id: member(named, f"token_id:{token_id}", None) for token_id in ids}
    return Reading(plausible(found, ids))
