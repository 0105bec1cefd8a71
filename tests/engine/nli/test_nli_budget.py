"""What a call allocates stays within the budget that was fixed at start, whatever is shared."""

import pytest
from models.nli import open_nli, shared_nli_model

from semif_bento.engine.budget import BranchBudget
from semif_bento.engine.meter import PeakMeter
from semif_bento.entailment import Pair, Tokens

TOKENS = 1024
SENTENCE = "The shop opens at nine and closes at six. "
PREMISE = SENTENCE * 60
INSTRUCTION = "Is the shop open, given all that is said of it? " * 25
CALLS = {
    "one long input": [Tokens(tuple(range(TOKENS)))],
    "many long inputs": [Tokens((n, *range(TOKENS - 1))) for n in range(8)],
    "short inputs": [Pair(f"Shop {n} is open.", "It is closed.") for n in range(300)],
    "a long premise": [Pair(PREMISE, f"It is {n} o'clock.") for n in range(100)],
    "long hypotheses": [Pair("The shop.", f"{n} {SENTENCE * 40}") for n in range(12)],
    "instructions within a premise": [
        Pair(SENTENCE * 30, f"{question} {INSTRUCTION} {n}") for question in "ABC" for n in range(9)
    ],
    "many premises": [Pair(f"{n} {PREMISE}", f"{h}") for n in range(10) for h in range(3)],
}


@pytest.fixture(scope="module", params=["cascade", "views"])
def tight(request):
    """A classifier whose budget is just what the longest input takes."""
    classifier = open_nli(
        shared_nli_model(), max_tokens=TOKENS, branch_attention=request.param, prefix_cache_mib=0
    )
    cost = classifier._budget.cost
    classifier._budget = BranchBudget(cost, cost.largest_bytes(TOKENS), TOKENS)
    return classifier


@pytest.mark.parametrize("name", CALLS)
def test_a_call_stays_within_the_budget(tight, name):
    with PeakMeter() as meter:
        tight.classify(CALLS[name])
    planned = tight._budget.budget_bytes
    assert 0 < meter.peak_bytes <= 1.25 * planned, f"{meter.peak_bytes / planned:.2f}"
