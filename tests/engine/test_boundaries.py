"""A tokenizer or template on which split encoding would be wrong is refused at start."""

import pytest
from models.byte_qwen import byte_tokenizer
from models.qwen_vocabulary import CHAT_TEMPLATE
from models.rows import request_of, row_about
from tokenizers import decoders, normalizers, pre_tokenizers

from semif_bento.engine.letters.encoding import Encoder
from semif_bento.engine.letters.slots import prove_slots
from semif_bento.errors import InvalidRequest, StartupError

LIMIT = 4096
SPACE = "Ġ"  # how a byte-level vocabulary writes a space


def _refusal(tokenizer):
    with pytest.raises(StartupError) as refused:
        Encoder(tokenizer, LIMIT)
    return str(refused.value)


def test_the_byte_tokenizer_by_itself_is_accepted():
    encoder = Encoder(byte_tokenizer(), LIMIT)
    assert encoder.encode(request_of([row_about("state")])).decisions[0].suffix_ids


def test_a_merge_across_the_edge_is_refused():
    """`"criterion":` and the space after it become one token, so no prefix ends at the colon."""
    assert _refusal(byte_tokenizer(merges=[(":", SPACE)])) == (
        "This tokenizer cannot carry the protocol. "
        "A question's start cannot be told from the text before it."
    )


def test_a_merge_that_swallows_the_start_of_the_edge_is_refused():
    """The comma before the edge's space joins it, so the state's end and the edge are one."""
    assert "end of the state" in _refusal(byte_tokenizer(merges=[(",", SPACE)]))


def test_a_tokenizer_that_marks_the_start_of_a_text_is_refused():
    """Metaspace: a text encoded apart begins with a mark that it has not in the middle."""
    tokenizer = byte_tokenizer(
        merges=[("▁", letter) for letter in "ABCDEFGHIJKLMNOP"],
        pre_tokenizer=pre_tokenizers.Metaspace(prepend_scheme="always", split=False),
        decoder=decoders.Metaspace(prepend_scheme="always", split=False),
    )
    prove_slots(tokenizer)  # its letters are fine
    assert _refusal(tokenizer)


def test_a_tokenizer_that_reads_across_both_sides_of_the_edge_is_refused():
    """Its normaliser changes a text that neither side holds alone."""
    tokenizer = byte_tokenizer()
    across = '", "criterion": "D'
    tokenizer.backend_tokenizer.normalizer = normalizers.Replace(across, across.upper())
    assert _refusal(tokenizer) == "Split encoding differs from whole encoding on this tokenizer."


def test_a_row_whose_question_merges_with_the_edge_is_refused_alone():
    """No probe starts like it, so the start passes, and that row and no other is refused."""
    merges = [(SPACE, '"'), (SPACE + '"', "Z"), (":", SPACE + '"Z')]
    encoder = Encoder(byte_tokenizer(merges=merges), LIMIT)
    assert encoder.encode(request_of([row_about("state", question="Did it?")]))
    with pytest.raises(InvalidRequest, match="question's start cannot be told"):
        encoder.encode(request_of([row_about("state", question="Zz")]))


TEMPLATES_THAT_REWRITE = {
    "in capitals": "message.content | upper",
    "escaped": "message.content | e",
    "without quotes": "message.content | replace('\"', '')",
    "twice": "message.content + message.content",
    "not at all": "''",
}


@pytest.mark.parametrize("expression", TEMPLATES_THAT_REWRITE.values(), ids=TEMPLATES_THAT_REWRITE)
def test_a_template_that_rewrites_the_payload_is_refused(expression):
    template = CHAT_TEMPLATE.replace("message.content", f"({expression})")
    assert _refusal(byte_tokenizer(chat_template=template)) == (
        "The chat template does not keep the payload as it is."
    )


@pytest.mark.parametrize("dropped", ["🙂", "Is it open?", ":)"])
def test_a_template_that_rewrites_some_payloads_only_is_refused(dropped):
    template = CHAT_TEMPLATE.replace(
        "message.content", f"message.content | replace('{dropped}', '')"
    )
    assert _refusal(byte_tokenizer(chat_template=template))


def test_a_letter_of_two_tokens_is_refused_and_named():
    tokenizer = byte_tokenizer(
        pre_tokenizer=pre_tokenizers.Metaspace(), decoder=decoders.Metaspace()
    )
    with pytest.raises(StartupError, match=r"^The answer slot 'A' is not one token"):
        prove_slots(tokenizer)


def test_a_letter_that_decodes_to_another_text_is_refused_and_named():
    tokenizer = byte_tokenizer()
    tokenizer.backend_tokenizer.normalizer = normalizers.Replace("C", "c")
    with pytest.raises(StartupError, match=r"^The answer slot 'C' is not one token"):
        prove_slots(tokenizer)


def test_a_letter_that_merges_with_the_end_of_the_prompt_is_refused_and_named():
    template = CHAT_TEMPLATE.replace("</think>\\n\\n", "</think>Answer=")
    tokenizer = byte_tokenizer(chat_template=template, merges=[("=", "B")])
    assert _refusal(tokenizer) == "Appending 'B' to a prompt does not append its token."


def test_a_template_that_gives_no_text_is_refused(monkeypatch):
    tokenizer = byte_tokenizer()
    monkeypatch.setattr(tokenizer, "apply_chat_template", lambda *args, **kwargs: [1, 2, 3])
    assert _refusal(tokenizer) == "The chat template does not render to text."
