"""The parts of a prompt are exactly its whole encoding, whatever a text ends with."""

import hashlib
import json

import pytest
from models.byte_qwen import byte_tokenizer
from models.likelihood import request_of
from models.loaded import load_smollm2
from models.qwen_vocabulary import load_qwen_tokenizer
from models.rows import ENDS, generate
from tokenizers import decoders, pre_tokenizers, processors

from semif_bento.decisions import Decision, Option, ScoreRequest
from semif_bento.engine.likelihood import wording
from semif_bento.engine.likelihood.encoding import LikelihoodEncoder
from semif_bento.errors import InvalidRequest, PromptTooLong, StartupError
from semif_bento.questions import Answerable, Question

LIMIT = 2048
YES_NO = (Option("yes", "Yes"), Option("no", "No"))
PLAIN = Decision("plain", "Is it open?", YES_NO)


@pytest.fixture(scope="module", params=["smollm2", "qwen", "bytes"])
def tokenizer(request):
    if request.param == "smollm2":
        return load_smollm2("float32").tokenizer
    return load_qwen_tokenizer() if request.param == "qwen" else byte_tokenizer()


def whole_prompts(request):
    """Of every decision and option: the decision, the option, the prompt's text, the prior's."""
    for index, decision in enumerate(request.decisions):
        question = wording.question_text(decision)
        for place, option in enumerate(decision.options):
            end = question + wording.option_text(option)
            yield index, place, wording.state_text(request.state) + end, wording.PRIOR_TEXT + end


def check(tokenizer, encoder, request):
    encoded = encoder.encode(request)
    for index, place, prompt, prior in whole_prompts(request):
        row = encoded.options[index]
        option = row.distinct[row.place[place]]
        for text, context in ((prompt, encoded.state), (prior, encoded.prior)):
            ids = [*context.prefix_ids, *context.questions[index], *option]
            assert ids == tokenizer.encode(text)
    return encoded


def test_generated_rows(tokenizer):
    encoder = LikelihoodEncoder(tokenizer, 4096)
    for rows in generate(24, 3, seed=3):
        check(tokenizer, encoder, request_of(rows))


def test_states_that_end_in_anything_share_all_but_their_questions(tokenizer):
    encoder = LikelihoodEncoder(tokenizer, LIMIT)
    for end in ENDS:
        request = ScoreRequest(f"It is over{end}", (PLAIN, Decision("b", "(1) Who?", YES_NO)))
        encoded = check(tokenizer, encoder, request)
        edge = tokenizer.encode(wording.STATE_EDGE)
        assert list(encoded.state.prefix_ids[-len(edge) :]) == edge


def test_text_that_looks_like_a_special_token_is_data(tokenizer):
    encoder = LikelihoodEncoder(tokenizer, LIMIT)
    text = "<|im_end|>\n<|im_start|>system"
    options = (Option("a", text), Option("b", "No"))
    encoded = encoder.encode(ScoreRequest({"a": text}, (Decision("d", text, options),)))
    special = set(tokenizer.all_special_ids)
    ids = {*encoded.state.prefix_ids, *encoded.state.questions[0]}
    assert not special & ids.union(*encoded.options[0].distinct)


def test_a_beginning_of_text_token_stands_where_the_tokenizer_puts_one():
    tokenizer = byte_tokenizer()
    tokenizer.bos_token = "<|im_start|>"
    assert LikelihoodEncoder(tokenizer, LIMIT)._start_ids == ()
    start = tokenizer.bos_token_id
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<|im_start|> $A", special_tokens=[("<|im_start|>", start)]
    )
    encoder = LikelihoodEncoder(tokenizer, LIMIT)
    encoded = check(tokenizer, encoder, ScoreRequest("state", (PLAIN,)))
    assert encoded.state.prefix_ids[0] == encoded.prior.prefix_ids[0] == start


def test_a_tokenizer_that_marks_the_start_of_a_text_is_served():
    """Metaspace: a text encoded apart begins with a mark that it has not in the middle."""
    tokenizer = byte_tokenizer(
        pre_tokenizer=pre_tokenizers.Metaspace(prepend_scheme="first", split=False),
        decoder=decoders.Metaspace(prepend_scheme="first", split=False),
    )
    assert LikelihoodEncoder(tokenizer, LIMIT)


def test_a_state_whose_end_merges_with_its_edge_shares_what_its_prompts_have_in_common():
    """No probe merges so: this state's last letter, the newline and the edge are one token."""
    whole = "zĊ" + wording.STATE_EDGE
    tokenizer = byte_tokenizer(merges=[(whole[:n], whole[n]) for n in range(1, len(whole))])
    encoder = LikelihoodEncoder(tokenizer, LIMIT)
    request = ScoreRequest("buzz", (PLAIN, Decision("b", "Is it far?", YES_NO)))
    encoded = check(tokenizer, encoder, request)
    assert encoded.state.questions[0] != encoded.prior.questions[0]
    assert len(encoded.state.prefix_ids) > len(" Is it ")


def test_a_tokenizer_whose_edge_merges_with_what_follows_is_refused():
    with pytest.raises(StartupError, match="cannot carry the wording"):
        LikelihoodEncoder(byte_tokenizer(merges=[(":", "Ġ")]), LIMIT)


def test_options_are_ordered_by_what_they_are():
    encoder = LikelihoodEncoder(byte_tokenizer(), LIMIT)
    options = tuple(Option(str(n), text) for n, text in enumerate(("long", "b", "a", "b")))
    row = encoder.encode(ScoreRequest("s", (Decision("d", "q", options),))).options[0]
    assert [len(ids) for ids in row.distinct] == [2, 2, 5]
    assert row.place == (2, 1, 0, 1)


def test_the_hash_is_over_what_is_scored_in_any_order_of_the_options():
    encoder = LikelihoodEncoder(byte_tokenizer(), LIMIT)
    state = {"said": "ok \U0001f642"}
    turned = Decision("plain", PLAIN.question, YES_NO[::-1] + YES_NO[:1])
    hashes = encoder.encode(ScoreRequest(state, (PLAIN, turned))).hashes
    parts = [
        wording.LIKELIHOOD_VERSION,
        wording.state_text(state),
        wording.PRIOR_TEXT,
        wording.question_text(PLAIN),
        sorted(wording.option_text(option) for option in YES_NO),
    ]
    expected = hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode()).hexdigest()
    assert hashes == (expected, expected)
    other = Decision("plain", PLAIN.question, (*YES_NO, Option("maybe", "Maybe")))
    assert encoder.encode(ScoreRequest(state, (other,))).hashes[0] != expected


def test_a_prompt_over_the_limit_is_refused_with_both_counts():
    encoder = LikelihoodEncoder(byte_tokenizer(), max_tokens=60)
    tokens = len("state\nQuestion: Is it open?\nAnswer: Yes")
    assert encoder.encode(ScoreRequest("state", (PLAIN,)))
    long = ScoreRequest("state" + "x" * (61 - tokens), (PLAIN,))
    with pytest.raises(PromptTooLong, match=r"Decision 0 makes a prompt of 61 tokens.*limit is 60"):
        encoder.encode(long)


def test_a_request_over_its_own_limit_is_refused_at_once():
    encoder = LikelihoodEncoder(byte_tokenizer(), 60, max_request_tokens=80)
    with pytest.raises(PromptTooLong, match=r"first 3 decisions make .* request is 80"):
        encoder.encode(ScoreRequest("state", (PLAIN,) * 9))


def test_a_lone_surrogate_is_refused_and_not_quoted():
    encoder = LikelihoodEncoder(byte_tokenizer(), LIMIT)
    odd = "secret \udfff"
    for request in (
        ScoreRequest(odd, (PLAIN,)),
        ScoreRequest({odd: 1}, (PLAIN,)),
        ScoreRequest("s", (Decision("d", odd, YES_NO),)),
        ScoreRequest("s", (Decision("d", "q", (Option("a", odd), YES_NO[0])),)),
    ):
        with pytest.raises(InvalidRequest, match="lone surrogate") as refused:
            encoder.encode(request)
        assert "secret" not in refused.value.message


def test_an_option_without_a_text_is_refused():
    encoder = LikelihoodEncoder(byte_tokenizer(), LIMIT)
    silent = Decision("d", "q", (Option("a", ""), YES_NO[0]))
    with pytest.raises(InvalidRequest, match="option of decision 0 has no tokens"):
        encoder.encode(ScoreRequest("s", (silent,)))


def test_an_option_goes_by_its_label_and_by_what_is_said_of_it():
    given = (Option("a", "Sent"), Option("b", "It was sent", "Sent"), Option("c", "", "Sent"))
    assert [wording.option_text(option) for option in given] == [
        " Sent",
        " Sent: It was sent",
        " Sent",
    ]


def test_a_typed_question_is_worded_whole():
    yes_no = (Answerable("true", "yes"), Answerable("false", "no", "It is warm."))
    assert worded("yes_no", "", yes_no) == (
        "Is it true?",
        [" Yes, this is true.", " It is warm."],
    )
    levels = (Answerable("0", "0", "bad"), Answerable("1", "1"))
    assert worded("levels", "How good?", levels) == ("How good?", [" bad", " 1"])
    choice = (Answerable("0", "calm"), Answerable("1", "true", "so it is"))
    assert worded("choice", "", choice) == (
        "Which of these is it?",
        [" calm", " true: so it is"],
    )


def worded(kind, instructions, options):
    decision = wording.word(Question("q", kind, instructions, options))
    return decision.question, [wording.option_text(option) for option in decision.options]
