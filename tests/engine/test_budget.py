"""Groups fit a budget that is fixed at start, and what a group is said to take is what it takes."""

import copy
import dataclasses
import random
from collections import Counter

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from models.faults import narrow
from models.rows import generate, request_of
from models.small import load_small_scorer

from semif_bento.decisions import Decision, Option, ScoreRequest
from semif_bento.engine.backbone import Backbone
from semif_bento.engine.budget import WIDEST_TO_NARROWEST, BranchBudget
from semif_bento.engine.cost import CostModel, PhaseCost, lengthened, measure_cost
from semif_bento.engine.meter import PeakMeter
from semif_bento.errors import StartupError

GROUPS = {
    "one short": [12],
    "one": [55],
    "one long": [700],
    "many short": [12] * 16,
    "many alike": [33] * 16,
    "64 of 60": [60] * 64,
    "ragged": sorted(random.Random(0).choices(range(20, 200), k=12)),
    "64 ragged": sorted(random.Random(1).choices(range(40, 90), k=64)),
    "mixed": [10] * 20 + [60] * 10 + [150] * 4 + [500],
}
FEW_TOKENS = ("one short", "one", "one long", "many short", "many alike")  # SmolLM2 is slow
PREFIXES = (40, 1500)
# By hand: a flat forward, and one in which prefixes are joined.
FLAT = CostModel(PhaseCost(1000, 10), PhaseCost(), PhaseCost(), False, 500, 4)
JOINED = CostModel(PhaseCost(1000, 10), PhaseCost(), PhaseCost(0, 0, 0, 0, 3, 1), True, 500, 4)
COSTS = pytest.mark.parametrize("cost", [FLAT, JOINED], ids=["flat", "joined"])


def two_layers_of_smollm2(smollm2):
    """SmolLM2's shape with 2 of its 30 layers: what is alive at once does not depend on depth."""
    config = copy.deepcopy(smollm2("float32").model.config)
    config.num_hidden_layers = 2
    with torch.random.fork_rng():
        return transformers.AutoModelForCausalLM.from_config(config).eval()


@pytest.fixture(scope="module", params=["smollm2", "tiny_qwen"])
def model_name(request):
    return request.param


@pytest.fixture(scope="module")
def model(model_name, smollm2, tiny_qwen):
    if model_name == "smollm2":
        return two_layers_of_smollm2(smollm2)
    return tiny_qwen("float32").model


@pytest.fixture(scope="module", params=["cascade", "views"])
def backbone(request, model):
    return Backbone(model, request.param)


@pytest.fixture(scope="module")
def cost(backbone):
    with torch.inference_mode():
        return measure_cost(backbone)


@pytest.mark.parametrize("prefix_tokens", PREFIXES)
@torch.inference_mode()
def test_what_a_group_takes_is_foretold_within_a_quarter(backbone, cost, model_name, prefix_tokens):
    prefix = lengthened(backbone.prefill([0] * 8), prefix_tokens)
    for group in FEW_TOKENS if model_name == "smollm2" else GROUPS:
        with PeakMeter() as meter:
            backbone.branches(prefix, [[0] * length for length in GROUPS[group]])
        foretold = cost.group_bytes(GROUPS[group], prefix_tokens) / meter.peak_bytes
        assert 0.8 <= foretold <= 1.25, group


@pytest.mark.parametrize("tokens", PREFIXES)
@torch.inference_mode()
def test_what_a_state_holds_is_foretold_exactly(backbone, cost, tokens):
    prefix = backbone.prefill([0] * tokens)
    assert cost.state_bytes(tokens) == prefix.bytes
    held = {
        tensor.untyped_storage()._cdata: tensor.untyped_storage().nbytes()
        for layer in prefix.layers
        for tensor in vars_of(layer)
    }
    assert sum(held.values()) == prefix.bytes  # no tensor is a view of a larger storage


def vars_of(layer):
    return [t for name in layer.__slots__ if torch.is_tensor(t := getattr(layer, name))]


@pytest.mark.parametrize("tokens", PREFIXES)
@torch.inference_mode()
def test_no_whole_prompt_takes_more_than_its_largest(backbone, cost, tokens):
    with PeakMeter() as direct:
        backbone.whole([0] * tokens)
    with PeakMeter() as prefill:
        backbone.prefill([0] * tokens)
    most = max(direct.peak_bytes, prefill.peak_bytes)
    assert most <= cost.largest_bytes(tokens) * 1.01
    if not cost.is_padded:
        assert cost.largest_bytes(tokens) <= most * 1.25


@torch.inference_mode()
def test_the_cost_is_measured_alike_every_time(backbone, cost):
    assert measure_cost(backbone) == cost


@COSTS
def test_every_branch_is_in_one_group_and_groups_fit(cost):
    random_ = random.Random(2)
    for _ in range(300):
        count, prefix = random_.randint(1, 64), random_.randint(1, 3000)
        lengths = [random_.randint(1, 400) for _ in range(count)]
        alone = cost.group_bytes([max(lengths)], prefix) + cost.state_bytes(prefix)
        most = max(cost.largest_bytes(400), int(alone * random_.uniform(1, 6)))
        groups = BranchBudget(cost, most, 400).groups(lengths, prefix)
        assert sorted(index for group in groups for index in group) == list(range(count))
        run = [lengths[index] for group in groups for index in group]
        assert run == sorted(lengths)
        for group in groups:
            taken = cost.group_bytes([lengths[index] for index in group], prefix)
            assert taken + cost.state_bytes(prefix) <= most


@COSTS
def test_groups_depend_on_the_request_alone(cost):
    random_ = random.Random(3)
    budget = BranchBudget(cost, cost.largest_bytes(400) + 20_000, 400)
    first = [random_.randint(1, 400) for _ in range(40)]
    expected = budget.groups(first, 100)
    for _ in range(20):
        budget.groups([random_.randint(1, 400) for _ in range(random_.randint(1, 64))], 200)
        assert budget.groups(first, 100) == expected
        assert BranchBudget(cost, budget.budget_bytes, 400).groups(first, 100) == expected


@COSTS
def test_more_budget_never_makes_more_groups_and_more_branches_never_fewer(cost):
    lengths = random.Random(4).choices(range(1, 400), k=50)
    least = cost.largest_bytes(400) + cost.state_bytes(500)
    counts = [
        len(BranchBudget(cost, least + more, 400).groups(lengths, 500))
        for more in range(0, 200_000, 5000)
    ]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[-1]
    budget = BranchBudget(cost, least, 400)
    counts = [len(budget.groups(lengths[:count], 500)) for count in range(1, 51)]
    assert counts == sorted(counts)


def plain_bytes(cost, lengths, prefix):
    """What a group takes, computed for this group alone."""
    if cost.is_padded:
        count, width, joined = len(lengths), max(lengths), prefix + max(lengths)
        figures = (count * width, count * -(-width // 64) * 64, count)
        figures += (count * joined, count * width * joined)
        beside = width * joined
    else:
        runs = Counter(-(-length // 32) * 32 for length in lengths)
        heaviest = max((-(-w // 64) * 64 * count, count) for w, count in runs.items())
        figures, beside = (sum(lengths), *heaviest, 0, 0), 0
    phases = (cost.layers, cost.mixing, cost.joining)
    factors = [dataclasses.astuple(phase) for phase in phases]
    taken = [sum(f * x for f, x in zip(row, (1, *figures), strict=True)) for row in factors]
    return int(max(taken)) + beside


def plain_groups(budget, lengths, prefix):
    """What `groups` says in its docstring, branch by branch."""
    groups = []
    for index in sorted(range(len(lengths)), key=lambda index: lengths[index]):
        group = [lengths[i] for i in groups[-1]] + [lengths[index]] if groups else []
        if (
            groups
            and len(group) <= (budget.max_branches or len(group))
            and not (budget.cost.is_padded and group[-1] > group[0] * WIDEST_TO_NARROWEST)
            and plain_bytes(budget.cost, group, prefix) + budget.cost.state_bytes(prefix)
            <= budget.budget_bytes
        ):
            groups[-1].append(index)
        else:
            groups.append([index])
    return groups


# Few branches of a wide run cost less than many of a narrow one: a growing group may get cheaper.
MIXED = CostModel(PhaseCost(9, 0.7), PhaseCost(3, 0.3, 0.9, 5e4), PhaseCost(), False, 500, 4)


@pytest.mark.parametrize("cost", [FLAT, JOINED, MIXED], ids=["flat", "joined", "mixed"])
@settings(deadline=None, database=None)
@given(st.data())
def test_groups_are_the_plain_algorithm_s(cost, data):
    lengths = data.draw(st.lists(st.integers(1, 400), max_size=40))
    prefix = data.draw(st.integers(1, 3000))
    most_bytes = cost.largest_bytes(400) + data.draw(st.integers(0, 2_000_000))
    most_branches = data.draw(st.none() | st.integers(1, 9))
    budget = BranchBudget(cost, most_bytes, 400, most_branches)
    assert budget.groups(lengths, prefix) == plain_groups(budget, lengths, prefix)


def test_a_group_holds_no_more_branches_than_allowed():
    budget = BranchBudget(FLAT, 10**9, 400, max_branches=7)
    assert [len(group) for group in budget.groups([5] * 20, 100)] == [7, 7, 6]


@COSTS
def test_a_budget_that_does_not_hold_the_longest_prompt_stops_the_start(cost):
    needed = cost.largest_bytes(4096)
    BranchBudget(cost, needed, 4096)
    with pytest.raises(StartupError, match=r"SEMIF_MAX_TOKENS=4096 takes .* MiB.*SEMIF_VRAM_CAP"):
        BranchBudget(cost, needed - 1, 4096)


@pytest.mark.parametrize("attention", ["cascade", "views"])
def test_little_of_realistic_suffixes_is_padding(tiny_qwen, attention):
    backbone = Backbone(tiny_qwen("float32").model, attention)
    cost = FLAT if attention == "cascade" else JOINED
    random_ = random.Random(5)
    for count in (8, 21, 64):
        lengths = [round(random_.lognormvariate(4.2, 0.4)) + 25 for _ in range(count)]
        groups = BranchBudget(cost, 10**9, 4096).groups(lengths, 1000)
        padded = sum(backbone.padded_tokens([lengths[i] for i in group]) for group in groups)
        assert sum(lengths) <= padded <= 1.2 * sum(lengths)


@pytest.fixture(scope="module")
def scorer():
    return load_small_scorer()


@pytest.fixture
def longest(scorer):
    """64 decisions about a state that fills the token limit."""
    decisions = request_of(generate(1, 62, seed=14)[0]).decisions
    options = tuple(Option(f"o{n}", f"The answer is {n}.") for n in range(16))
    long = [Decision(f"long {n}", "Which one is it? " * 20, options) for n in range(2)]
    request = ScoreRequest("word " * 1000, (*decisions, *long))
    encoded = scorer._encoder.encode(request)
    most = max(len(encoded.whole(index)) for index in range(64))
    scorer.forget_prefixes()
    return ScoreRequest("word " * (1000 + 4096 - most), request.decisions)


def test_64_decisions_at_the_token_limit_on_a_budget_for_3_equal_direct_scoring(scorer, longest):
    narrow(scorer, longest, branches=3)
    outcome = scorer.shared(longest)
    assert outcome.timing.prefix_tokens > 3500
    assert max(scores.input_tokens for scores in outcome.scores) == 4096
    assert outcome.timing.branch_groups > 8
    assert [s.decision_id for s in outcome.scores] == [d.id for d in longest.decisions]
    for index in (0, 1, 17, 40, 62, 63):
        alone = ScoreRequest(longest.state, longest.decisions[index : index + 1])
        expected = scorer.direct(alone).scores.option_logits
        assert outcome.scores[index].option_logits == pytest.approx(expected, abs=1e-4)


def test_no_call_at_the_token_limit_takes_more_than_the_least_budget_to_start_with(scorer, longest):
    cost = scorer._budget.cost
    scorer._budget = BranchBudget(cost, cost.largest_bytes(4096), 4096)
    with PeakMeter() as shared:
        scorer.shared(longest)
    with PeakMeter() as direct:
        scorer.direct(ScoreRequest(longest.state, longest.decisions[63:]))
    assert 0 < shared.peak_bytes <= scorer._budget.budget_bytes
    assert 0 < direct.peak_bytes <= scorer._budget.budget_bytes
