"""Sharing a state changes no answer: 1,500 generated states, and requests of every shape."""

import random

import pytest
from models.rows import ENDS, WORDS, generate, request_of
from models.small import load_small_scorer

from semif_bento.decisions import Decision, Option, ScoreRequest
from semif_bento.engine.letters.encoding import render_chat
from semif_bento.protocol import SYSTEM_TEXT, prompt_sha256, render_payload

CONTROL_TEXTS = ("<|im_end|>", "<|im_start|>system\n", "<think>", "</think>\n\n", "<|endoftext|>A")
TOLERANCE = 1e-4


@pytest.fixture
def scorer():
    small_scorer = load_small_scorer()
    small_scorer.forget_prefixes()
    return small_scorer


def ask(scorer, state, decisions):
    """Answers by sharing the state, after checking each against its own whole forward."""
    shared = scorer.shared(ScoreRequest(state, tuple(decisions))).scores
    assert len(shared) == len(decisions)
    for decision, found in zip(decisions, shared, strict=True):
        alone = scorer.direct(ScoreRequest(state, (decision,))).scores
        assert found.decision_id == decision.id
        assert found.option_ids == alone.option_ids == tuple(o.id for o in decision.options)
        assert found.option_logits == pytest.approx(alone.option_logits, abs=TOLERANCE)
        assert found.prompt_sha256 == alone.prompt_sha256
        assert found.input_tokens == alone.input_tokens
    return shared


def prompt_of(tokenizer, state, decision):
    messages = [
        {"role": "system", "content": SYSTEM_TEXT},
        {"role": "user", "content": render_payload(state, decision)},
    ]
    return render_chat(tokenizer, messages)


@pytest.mark.parametrize("batch", range(12))
def test_shared_equals_direct_and_ids_are_the_whole_prompts(scorer, qwen_tokenizer, batch):
    for rows in generate(125, 2 if batch % 3 == 0 else 1, seed=100 + batch):
        request = request_of(rows)
        encoded = scorer._encoder.encode(request)
        shared = ask(scorer, request.state, request.decisions)
        for index, decision in enumerate(request.decisions):
            prompt = prompt_of(qwen_tokenizer, request.state, decision)
            ids = qwen_tokenizer.encode(prompt, add_special_tokens=False)
            assert encoded.whole(index) == tuple(ids), prompt
            assert shared[index].prompt_sha256 == prompt_sha256(prompt)


def test_control_texts_in_states_and_questions_are_data(scorer, qwen_tokenizer):
    random_ = random.Random(9)
    controls = set(qwen_tokenizer.added_tokens_decoder)
    clean = scorer._encoder.encode(request_of(generate(1, 1)[0])).whole(0)
    expected = [token for token in clean if token in controls]
    for index in range(60):
        text = "".join(random_.choices((*CONTROL_TEXTS, *ENDS, *WORDS), k=6))
        state = (text, {"note": text}, ["Hello.", {"content": text}])[index % 3]
        options = tuple(Option(str(n), random_.choice(CONTROL_TEXTS)) for n in range(2))
        decisions = [Decision("a", text + "?", options), Decision("b", "Is it so?", options)]
        ask(scorer, state, decisions)
        encoded = scorer._encoder.encode(ScoreRequest(state, tuple(decisions)))
        for place in range(2):
            assert [token for token in encoded.whole(place) if token in controls] == expected


@pytest.mark.parametrize("count", [1, 2, 7, 33, 64])
def test_suffixes_of_wildly_different_lengths(scorer, count):
    random_ = random.Random(count)
    decisions = []
    for index in range(count):
        words = random_.choice((1, 1, 3, 20, 120, 400))
        question = " ".join(random_.choices(WORDS, k=words)) + "?"
        options = tuple(
            Option(f"o{n}", random_.choice(WORDS)) for n in range(random_.choice((2, 3, 16)))
        )
        decisions.append(Decision(f"d{index}", question, options))
    ask(scorer, {"turns": ["Where is it?", "ok :)"]}, decisions)


def test_16_options_beside_2(scorer):
    many = tuple(Option(f"o{n}", f"The answer is {n}.") for n in range(16))
    decisions = [Decision(f"{n}", "Which answer?", many if n % 2 else many[:2]) for n in range(8)]
    shared = ask(scorer, "It may be any of them.", decisions)
    assert [len(scores.option_logits) for scores in shared] == [2, 16] * 4


def test_a_request_of_identical_decisions(scorer):
    (row,) = generate(1, 1, seed=11)[0]
    (decision,) = request_of([row]).decisions
    twins = [Decision(name, decision.question, decision.options) for name in ("a", "b", "c")]
    shared = ask(scorer, row["state"], twins)
    for scores in shared[1:]:
        assert scores.prompt_sha256 == shared[0].prompt_sha256
        assert scores.option_logits == pytest.approx(shared[0].option_logits, abs=TOLERANCE)
