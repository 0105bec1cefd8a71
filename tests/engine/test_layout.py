"""How branches lie in a flat batch, and back."""

import random

import pytest
import torch

from semif_bento.engine.layout import RUN_STEP, BranchLayout

CPU = torch.device("cpu")


def _some_lengths(seed):
    random_ = random.Random(seed)
    widest = random_.choice((1, 2, 40, 200))
    return sorted(random_.randint(1, widest) for _ in range(random_.randint(1, 40)))


@pytest.mark.parametrize("seed", range(25))
def test_padding_and_unpadding_gives_every_token_back(seed):
    lengths = _some_lengths(seed)
    flat = torch.randn(sum(lengths), 2, 3)
    layout = BranchLayout.of(lengths, 7, CPU)
    assert torch.equal(torch.cat([run.unpad(run.pad(flat)) for run in layout.runs]), flat)


@pytest.mark.parametrize("seed", range(25))
def test_each_branch_lies_in_its_own_row_and_padding_repeats_its_last_token(seed):
    lengths = _some_lengths(seed)
    branches = torch.arange(len(lengths)).repeat_interleave(torch.tensor(lengths))
    steps = torch.cat([torch.arange(length) for length in lengths])
    layout = BranchLayout.of(lengths, 0, CPU)
    row = 0
    for run in layout.runs:
        owners, places = run.pad(branches), run.pad(steps)
        for branch, place in zip(owners, places, strict=True):
            length = lengths[row]
            assert branch.tolist() == [row] * run.width
            assert place.tolist() == [*range(length), *[length - 1] * (run.width - length)]
            row += 1
    assert row == len(lengths)


@pytest.mark.parametrize("seed", range(25))
def test_positions_count_on_from_the_prefix_and_ends_are_last_tokens(seed):
    lengths = _some_lengths(seed)
    layout = BranchLayout.of(lengths, 100, CPU)
    expected = [100 + step for length in lengths for step in range(length)]
    assert layout.positions.tolist() == expected
    assert layout.positions[layout.ends].tolist() == [99 + length for length in lengths]


@pytest.mark.parametrize("seed", range(25))
def test_a_run_pads_a_branch_by_less_than_one_step(seed):
    lengths = _some_lengths(seed)
    layout = BranchLayout.of(lengths, 0, CPU)
    assert sum(run.branches * run.width for run in layout.runs) == layout.padded_tokens
    assert layout.padded_tokens < sum(lengths) + RUN_STEP * len(lengths)
    branch = 0
    for run in layout.runs:
        own = lengths[branch : branch + run.branches]
        assert run.width == own[-1] < own[0] + RUN_STEP
        branch += run.branches


@pytest.mark.parametrize("lengths", [[], [0, 1], [-1], [3, 2]])
def test_lengths_that_are_empty_or_out_of_order_are_refused(lengths):
    with pytest.raises(ValueError, match="positive and ascending"):
        BranchLayout.of(lengths, 0, CPU)
