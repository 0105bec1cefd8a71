"""A call fits its budget, stops for a caller who left, and refuses what it cannot score."""

import pytest
import torch
from models import likelihood
from models.byte_qwen import build_byte_qwen
from models.scorers import assemble, settings_for
from torch import nn

from semif_bento.caller import Caller
from semif_bento.decisions import Decision, Option, ScoreRequest
from semif_bento.engine.budget import BranchBudget
from semif_bento.engine.likelihood.head import HIDDEN_ROWS, VOCABULARY_ROWS, TokenHead
from semif_bento.engine.meter import PeakMeter
from semif_bento.engine.workspace import Workspace
from semif_bento.errors import ClientClosed, InvalidRequest, PromptTooLong, ScoringFailed

LIMIT = 1024
YES_NO = (Option("yes", "Yes"), Option("no", "No"))
PLAIN = ScoreRequest("state", (Decision("d", "Is it?", YES_NO),))
LONG = "x" * LIMIT


@pytest.fixture(scope="module", params=["cascade", "views"])
def scorer(request):
    return likelihood.assemble(build_byte_qwen(), branch_attention=request.param, max_tokens=LIMIT)


@pytest.mark.parametrize(
    "request_",
    [
        ScoreRequest(LONG, PLAIN.decisions),
        ScoreRequest("state", (Decision("d", LONG, YES_NO),)),
        ScoreRequest("state", (Decision("d", "Is it?", (*YES_NO, Option("c", LONG))),)),
        ScoreRequest("secret \udfff", PLAIN.decisions),
    ],
    ids=["state", "question", "option", "surrogate"],
)
def test_what_cannot_be_scored_reaches_no_model(scorer, reached, request_):
    for score in (scorer.direct, scorer.shared):
        with pytest.raises(InvalidRequest) as refused:
            score(request_)
        assert "secret" not in refused.value.message
        is_long = isinstance(refused.value, PromptTooLong)
        assert is_long == (f"limit is {LIMIT} and nothing is truncated" in refused.value.message)
    assert reached == []


def test_a_caller_who_left_costs_no_forward(scorer, reached):
    caller = Caller()
    caller.leave()
    for score in (scorer.direct, scorer.shared):
        with pytest.raises(ClientClosed):
            score(PLAIN, caller)
    assert reached == []


def test_a_caller_who_leaves_meanwhile_ends_the_call_before_its_next_forward(scorer, monkeypatch):
    scorer.forget_prefixes()
    caller, runs = Caller(), []
    right = scorer._reader.backbone.branch_states

    def leaving(*args):
        runs.append(args)
        caller.leave()
        return right(*args)

    monkeypatch.setattr(scorer._reader.backbone, "branch_states", leaving)
    with pytest.raises(ClientClosed):
        scorer.shared(PLAIN, caller)
    assert len(runs) == 1  # the prior's
    assert scorer.status().prefix_cache.entries == 0


def test_no_call_takes_more_than_the_budget(scorer):
    reader = scorer._reader
    cost = reader.budget.cost
    options = tuple(Option(str(n), f"{n} " + "words " * 9) for n in range(12))
    decisions = [Decision(str(n), "Which? " * n, options[: 2 + n]) for n in range(1, 9)]
    request = ScoreRequest("word " * 100, tuple(decisions))
    kept = reader.budget
    reader.budget = BranchBudget(cost, cost.largest_bytes(LIMIT), LIMIT)
    try:
        for score in (
            scorer.shared,
            lambda r: scorer.direct(ScoreRequest(r.state, r.decisions[:1])),
        ):
            scorer.forget_prefixes()
            with PeakMeter() as meter:
                score(request)
            assert 0 < meter.peak_bytes <= reader.budget.budget_bytes + reader.head.bytes
    finally:
        reader.budget = kept
        scorer.forget_prefixes()


def test_one_workspace_serves_letters_and_likelihood_side_by_side():
    loaded = build_byte_qwen()
    workspace = Workspace.of(settings_for("float32"))
    scorer = likelihood.assemble(loaded, workspace)
    letters = assemble(loaded)
    expected = letters.shared(PLAIN).scores
    first = scorer.shared(PLAIN)
    assert letters.shared(PLAIN).scores == expected
    assert scorer.shared(PLAIN).scores == first.scores
    assert scorer.shared_readout
    assert first.serving_config != letters.serving_config


@pytest.mark.parametrize("bias", [True, False])
def test_log_probs_are_the_whole_head_s(bias):
    torch.manual_seed(0)
    linear = nn.Linear(16, VOCABULARY_ROWS + 500, bias=bias)
    count = HIDDEN_ROWS * 2 + 7
    hidden = torch.randn(count, 16) * 5
    rows = sorted([*range(0, count, 3), 5, 5, count - 1])
    tokens = [(n * 977) % (VOCABULARY_ROWS + 500) for n in range(len(rows))]
    with torch.inference_mode():
        found = TokenHead(linear).log_probs(hidden, rows, tokens)
        expected = linear(hidden).double().log_softmax(-1)[rows, tokens]
    assert found == pytest.approx(expected.tolist(), abs=1e-4)


def test_a_head_takes_no_more_than_it_says():
    head = TokenHead(nn.Linear(16, VOCABULARY_ROWS * 2))
    hidden = torch.randn(HIDDEN_ROWS * 2, 16)
    with torch.inference_mode(), PeakMeter() as meter:
        head.log_probs(hidden, range(len(hidden)), range(len(hidden)))
    assert meter.peak_bytes <= head.bytes * 1.02  # beside sums of a few numbers each


def test_a_log_probability_that_is_not_finite_fails():
    linear = nn.Linear(16, 40)
    with torch.inference_mode():
        linear.bias[3] = float("nan")
        with pytest.raises(ScoringFailed, match="not a finite number"):
            TokenHead(linear).log_probs(torch.randn(2, 16), [0, 1], [1, 2])
