"""The answer slots: each letter proven to be one token of its own; knows nothing of models."""

from transformers import PreTrainedTokenizerFast

from semif_bento.errors import StartupError
from semif_bento.protocol import LETTERS


def prove_slots(tokenizer: PreTrainedTokenizerFast) -> tuple[int, ...]:
    """Return the token id of each of the 16 letters, in order.

    Guards that a letter is exactly one token that decodes back to it and that no two share one.
    It does not guard the letter's place after a prompt; `Encoder` proves that on its template.

    Raises:
        StartupError: a letter breaks either rule; the message names it.
    """
    slot_ids: list[int] = []
    for letter in LETTERS:
        ids = tokenizer.encode(letter, add_special_tokens=False)
        if len(ids) != 1 or tokenizer.decode(ids) != letter:
            raise StartupError(f"The answer slot {letter!r} is not one token of this tokenizer.")
        slot_ids.append(ids[0])
    if len(set(slot_ids)) != len(slot_ids):
        raise StartupError("Two answer slots share one token of this tokenizer.")
    return tuple(slot_ids)
