"""Pairs to ids: in two parts, equal to the whole, with nothing cut off and no text obeyed."""

import hashlib
import random
import struct

import pytest
from models.nli import TEMPLATE

from semif_bento.engine.nli.encoding import PairEncoder
from semif_bento.entailment import Pair, Rendered, Tokens, render_pair
from semif_bento.errors import InvalidRequest, PromptTooLong, StartupError

TEXTS = (
    "The shop opens at nine.",
    "ends with a brace }",
    '{"said": "ok :)"}',
    "\u4e2d\u6587\u6587\u672c\uff0c\u6ca1\u6709\u7a7a\u683c\u3002",
    "\U0001f642\U0001f642 e\u0301 \u0301starts with a mark",
    "line\r\n\r\nlines\n\n",
    "12.5 %",
    "Hypothesis: Premise: Hypothesis:",
    "{premise} {hypothesis} {}",
    "<|im_end|><|endoftext|><think>",
    "'quoted' \"quoted\"",
    "a" * 300,
    " \t ",
    "\x00",
)


@pytest.fixture(scope="module")
def encoder(qwen_tokenizer):
    return PairEncoder(qwen_tokenizer, TEMPLATE, max_tokens=8192, vocabulary=248320)


def ids_of(encoder, given):
    [encoded] = encoder.encode([given])
    return encoded.prefix_ids + encoded.suffix_ids


@pytest.mark.parametrize("premise", TEXTS)
def test_a_pair_in_two_parts_has_the_ids_of_the_whole(encoder, qwen_tokenizer, premise):
    for hypothesis in TEXTS:
        pair = Pair(premise, hypothesis)
        plain = encoder._plain.encode(render_pair(TEMPLATE, pair))
        assert ids_of(encoder, pair) == plain
        if "<|" not in premise + hypothesis and "<think>" not in premise + hypothesis:
            assert plain == tuple(qwen_tokenizer(render_pair(TEMPLATE, pair)).input_ids)


def test_random_pairs_have_the_ids_of_the_whole_and_share_their_premise(encoder):
    source = random.Random(0)
    alphabet = " \n\t:.\"'{}[]<|>abcXYZ019\u00e9\u0301\u4e2d\U0001f642\u200d"
    for _ in range(500):
        texts = ["".join(source.choices(alphabet, k=source.randint(1, 30))) for _ in range(2)]
        pair = Pair(*texts)
        [encoded] = encoder.encode([pair])
        whole = encoder._plain.encode(render_pair(TEMPLATE, pair))
        assert encoded.prefix_ids + encoded.suffix_ids == whole
        assert encoded.prefix_ids


def test_pair_text_and_ids_are_cut_at_the_same_place(encoder):
    pair = Pair("The shop opens at nine.", "It is open.")
    text = render_pair(TEMPLATE, pair)
    forms = [pair, Rendered(text), Tokens(encoder._plain.encode(text))]
    first, second, third = encoder.encode(forms)
    assert first == second == third
    assert (
        encoder._plain.encode("Premise: The shop opens at nine.\nHypothesis:") == first.prefix_ids
    )


def test_an_input_without_the_mark_or_with_nothing_behind_it_is_not_cut(encoder):
    for text in ("no mark at all", "Premise: a\nHypothesis:", "x"):
        [encoded] = encoder.encode([Rendered(text)])
        assert (encoded.prefix_ids, encoded.suffix_ids) == ((), encoder._plain.encode(text))


def test_what_looks_like_a_special_token_is_text(encoder, qwen_tokenizer):
    special = set(qwen_tokenizer.added_tokens_decoder)
    for token in qwen_tokenizer.get_added_vocab():
        for given in (Pair(f"a {token} b", f"c{token}"), Rendered(f"Premise: {token}")):
            assert not special & set(ids_of(encoder, given))


def test_white_space_around_a_premise_or_a_hypothesis_says_nothing(encoder):
    assert ids_of(encoder, Pair(" P \n", " H \n")) == ids_of(encoder, Pair("P", "H"))
    assert ids_of(encoder, Pair("P", "H")) == encoder._plain.encode("Premise: P\nHypothesis: H")


def test_the_hash_is_over_all_ids_as_four_bytes_each(encoder):
    [encoded] = encoder.encode([Pair("P", "H")])
    ids = encoded.prefix_ids + encoded.suffix_ids
    packed = struct.pack(f"<{len(ids)}I", *ids)
    assert encoded.tokens_sha256 == hashlib.sha256(packed).hexdigest()


def test_a_premise_of_twenty_thousand_characters_keeps_its_whole_hypothesis(encoder):
    premise = "The shop opens at nine and closes at six. " * 477
    assert len(premise) > 20_000
    [encoded] = encoder.encode([Pair(premise, "It is open at noon.")])
    ending = encoder._plain.encode(" It is open at noon.")
    assert encoded.suffix_ids == ending


@pytest.mark.parametrize(
    "given",
    [
        Pair("\u4e2d\u6587\u3002" * 6000, "short"),
        Rendered("Premise: " + "word " * 9000 + "\nHypothesis: short"),
        Tokens((1,) * 8193),
    ],
)
def test_an_input_over_the_limit_is_refused_with_both_counts(encoder, given):
    with pytest.raises(PromptTooLong, match=r"^Input 1 makes \d+ tokens.* the limit is 8192 and"):
        encoder.encode([Pair("a", "b"), given])


def test_the_limit_itself_is_legal(encoder):
    assert encoder.encode([Tokens((1,) * 8192)])[0].length == 8192


@pytest.mark.parametrize("ids", [(248320,), (-1,), (1, 2, 1 << 40)])
def test_an_id_that_the_model_does_not_know_is_refused(encoder, ids):
    with pytest.raises(InvalidRequest, match="Input 0 holds an id outside 0 to 248319"):
        encoder.encode([Tokens(ids)])


@pytest.mark.parametrize("given", [Tokens(()), Rendered("")])
def test_an_empty_input_is_refused(encoder, given):
    with pytest.raises(InvalidRequest, match="Input 0 is empty"):
        encoder.encode([given])


@pytest.mark.parametrize("given", [Pair("\ud800", "h"), Pair("p", "h\udfff"), Rendered("\ud800")])
def test_a_lone_surrogate_is_refused(encoder, given):
    with pytest.raises(InvalidRequest, match="Input 0 holds a lone surrogate"):
        encoder.encode([given])


def test_a_premise_is_encoded_once_however_many_hypotheses_it_has(encoder, monkeypatch):
    seen = []
    original = encoder._plain.encode
    monkeypatch.setattr(encoder._plain, "encode", lambda text: seen.append(text) or original(text))
    encoder.encode([Pair("A premise of some length.", f"claim {n}") for n in range(20)])
    assert sum("A premise" in text for text in seen) == 1


@pytest.mark.parametrize("template", ["{premise}{hypothesis}", "{premise} {hypothesis}"])
def test_a_template_without_a_mark_cannot_be_cut_and_is_refused(qwen_tokenizer, template):
    with pytest.raises(StartupError, match="no mark"):
        PairEncoder(qwen_tokenizer, template, 4096, 248320)


def test_a_template_whose_mark_merges_with_the_hypothesis_is_refused(qwen_tokenizer):
    with pytest.raises(StartupError, match="two parts"):
        PairEncoder(qwen_tokenizer, "{premise} so{hypothesis}", 4096, 248320)
