"""Scores are those of a plain reference that runs each option in a forward of its own."""

import pytest
import torch
from models import likelihood
from models.byte_qwen import build_byte_qwen
from models.likelihood import request_of
from models.rows import generate

from semif_bento.decisions import Decision, Option, ScoreRequest

TOLERANCE = {"float32": 2e-3, "bfloat16": 1.5}
"""Nats of a whole option. A bfloat16 logit over 16 has steps of 0.125, and an option sums several
twice; the reference itself moves as much when it is given another padding."""

STATE = (
    "The parcel was handed over on Tuesday. The customer wrote the same day that the vase inside "
    "is broken, and asks for a replacement."
)
YES_NO = (Option("yes", "Yes"), Option("no", "No"))
QUEUES = (
    Option("damage", "Damage: goods that arrive broken"),
    Option("billing", "Billing"),
    Option("other", "Billing and everything else"),
    Option("none", "None"),
)
DECISIONS = (
    Decision("delivered", "Has the parcel been delivered?", YES_NO),
    Decision("queue", "Which team should handle this, the first or another?", QUEUES),
    Decision("angry", "Does the customer ask for an invoice?", YES_NO),
)
REQUEST = ScoreRequest(STATE, DECISIONS)
BOTH = ("cascade", "views")


def compare(loaded, scorer, request, tolerance):
    shared = scorer.shared(request)
    again = scorer.shared(request)
    assert again.timing.cache_hit
    assert again.scores == shared.scores
    for decision, found in zip(request.decisions, shared.scores, strict=True):
        expected = likelihood.reference(loaded, request.state, decision)
        direct = scorer.direct(ScoreRequest(request.state, (decision,))).scores
        assert found.decision_id == direct.decision_id == decision.id
        assert found.option_ids == tuple(option.id for option in decision.options)
        assert found.option_logits == pytest.approx(expected, abs=tolerance)
        assert direct.option_logits == pytest.approx(expected, abs=tolerance)
        assert found.prompt_sha256 == direct.prompt_sha256
        assert found.input_tokens == direct.input_tokens
        assert sum(found.probabilities) == pytest.approx(1)


@pytest.fixture(scope="module")
def small(smollm2):
    return likelihood.assemble(smollm2("float32"))


def test_real_weights(smollm2, small):
    compare(smollm2("float32"), small, REQUEST, TOLERANCE["float32"])


def test_real_weights_in_bfloat16(smollm2):
    loaded = smollm2("bfloat16")
    scorer = likelihood.assemble(loaded, branch_attention="views")
    compare(loaded, scorer, ScoreRequest(STATE, DECISIONS[:1]), TOLERANCE["bfloat16"])


@pytest.mark.parametrize("attention", BOTH)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_hybrid_model_with_a_large_vocabulary(tiny_qwen, dtype, attention):
    loaded = tiny_qwen(dtype)
    scorer = likelihood.assemble(loaded, branch_attention=attention)
    compare(loaded, scorer, REQUEST, TOLERANCE[dtype])


@pytest.fixture(scope="module")
def byte_qwen():
    return build_byte_qwen()


@pytest.mark.parametrize("attention", BOTH)
def test_generated_rows_of_many_kinds(byte_qwen, attention):
    scorer = likelihood.assemble(byte_qwen, branch_attention=attention)
    for rows in generate(4, 2, seed=11):
        compare(byte_qwen, scorer, request_of(rows), 2e-3)


def test_real_weights_answer_an_easy_question_right(small):
    scores = small.shared(REQUEST).scores[1]
    best = scores.option_logits.index(max(scores.option_logits))
    assert scores.option_ids[best] == "damage"


def test_a_question_is_run_once_and_an_option_s_last_token_never(byte_qwen):
    scorer = likelihood.assemble(byte_qwen, branch_attention="cascade")
    decision = Decision("d", "Which?", (Option("a", "ab"), Option("b", "abc"), Option("c", "xyz")))
    timing = scorer.shared(ScoreRequest("state", (decision,))).timing
    # One token a byte: " ab" lies along " abc", whose last is not run.
    assert timing.true_suffix_tokens == len(" Which?\nAnswer:") + len(" ab") + len(" xy")


def test_several_prompts_past_one_part_of_the_head(byte_qwen):
    """More hidden states than are multiplied with the head at once."""
    scorer = likelihood.assemble(byte_qwen)
    options = tuple(Option(str(n), f"{n} " + "long " * 12) for n in range(4))
    decision = Decision("d", "Which?", options)
    compare(byte_qwen, scorer, ScoreRequest("state", (decision,)), 5e-3)


def test_the_untouched_model_gives_the_same_bits_afterwards(byte_qwen):
    ids = torch.tensor([[1, 2, 3]])
    before = byte_qwen.model(input_ids=ids).logits
    likelihood.assemble(byte_qwen).shared(ScoreRequest(STATE, DECISIONS))
    assert torch.equal(byte_qwen.model(input_ids=ids).logits, before)
