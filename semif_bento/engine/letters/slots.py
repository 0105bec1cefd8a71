"""The answer slots: each letter proven to be one token of its own; knows nothing of models."""

from dataclasses import dataclass

from transformers import PreTrainedTokenizerFast

from semif_bento.errors import StartupError
from semif_bento.protocol import LETTERS, MAX_WIDE_OPTIONS, wide_letters


@dataclass(frozen=True, slots=True)
class SlotTable:
    """The letters that options go by, in order, and each one's token id."""

    letters: tuple[str, ...]
    ids: tuple[int, ...]


def prove_slots(tokenizer: PreTrainedTokenizerFast) -> tuple[int, ...]:
    """Return the token id of each of the 16 letters, in order.

    Guards that a letter is exactly one token that decodes back to it and that no two share one.
    It does not guard the letter's place after a prompt; `Encoder` proves that on its template.

    Raises:
        StartupError: a letter breaks either rule; the message names it.
    """
    slot_ids: list[int] = []
    for letter in LETTERS:
        slot_id = _only_token(tokenizer, letter)
        if slot_id is None:
            raise StartupError(f"The answer slot {letter!r} is not one token of this tokenizer.")
        slot_ids.append(slot_id)
    if len(set(slot_ids)) != len(slot_ids):
        raise StartupError("Two answer slots share one token of this tokenizer.")
    return tuple(slot_ids)


def find_wide_slots(
    tokenizer: PreTrainedTokenizerFast,
    prompt: str,
    head_rows: int | None = None,
    most_slots: int = MAX_WIDE_OPTIONS,
) -> SlotTable:
    """Return the slots of wide prompts, up to `most_slots`: those of A to Z, AA to ZZ that hold.

    A slot holds if it is exactly one token that decodes back to it, is no other slot's, is what
    appending it to `prompt` appends, and has a row in the model's head (of `head_rows` rows; a
    tokenizer may know more tokens than the model has logits). The table begins with the letters of
    `prove_slots`, which hold by then.
    """
    prompt_ids = tokenizer.encode(prompt, add_special_tokens=False)
    found: dict[int, str] = {}
    for letter in wide_letters():
        slot_id = _only_token(tokenizer, letter)
        if slot_id is None or slot_id in found:
            continue
        if head_rows is not None and slot_id >= head_rows:
            continue
        if tokenizer.encode(prompt + letter, add_special_tokens=False) == [*prompt_ids, slot_id]:
            found[slot_id] = letter
        if len(found) == most_slots:
            break
    return SlotTable(tuple(found.values()), tuple(found))


def _only_token(tokenizer: PreTrainedTokenizerFast, letter: str) -> int | None:
    """Return the one token that a letter is and that decodes back to it, or None."""
    ids = tokenizer.encode(letter, add_special_tokens=False)
    return ids[0] if len(ids) == 1 and tokenizer.decode(ids) == letter else None
