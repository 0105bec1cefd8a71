"""Branches that share a stem run it once, and end where branches of their own end."""

import pytest
import torch
from models.byte_qwen import build_byte_qwen

from semif_bento.engine.backbone import Backbone
from semif_bento.engine.layout import BranchLayout, Stem
from semif_bento.engine.tolerance import relative_distance

CPU = torch.device("cpu")
# Of each branch: its stem's key, the stem's tokens, and its own tokens.
GROUPS = {
    "one": [(0, 5, 0)],
    "one with a rest": [(0, 5, 3)],
    "two": [(0, 5, 1), (0, 5, 2)],
    "two trees": [(0, 5, 1), (1, 3, 4), (0, 5, 30), (1, 3, 70)],
    "widths apart": [(0, 30, 1), (0, 30, 5), (0, 30, 40), (0, 30, 41)],
    "no stem": [(0, 0, 4), (1, 0, 9)],
    "both": [(0, 0, 4), (1, 3, 4), (1, 3, 5), (2, 0, 9)],
}


def _ids(count, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(256, (count,), generator=generator).tolist()


def _branches(group):
    stems = [Stem(key, tokens) for key, tokens, _ in group]
    suffixes = [
        _ids(tokens, 100 + key) + _ids(own, index) for index, (key, tokens, own) in enumerate(group)
    ]
    return suffixes, stems


@pytest.fixture(autouse=True)
def _without_gradients():
    with torch.inference_mode():
        yield


@pytest.fixture(scope="module", params=["cascade", "views"])
def backbone(request):
    return Backbone(build_byte_qwen().model, request.param)


@pytest.mark.parametrize("group", GROUPS.values(), ids=GROUPS)
def test_every_token_has_the_hidden_state_of_its_whole_prompt(backbone, group):
    start = _ids(20, 1)
    suffixes, stems = _branches(group)
    states = backbone.branch_states(backbone.prefill(start), suffixes, stems)
    for suffix, path in zip(suffixes, states.paths, strict=True):
        found = states.hidden[[path.place(token) for token in range(len(suffix))]]
        whole = backbone._layers(input_ids=torch.tensor([[*start, *suffix]]), use_cache=False)
        assert relative_distance(found, whole.last_hidden_state[0, len(start) :]) < 1e-4


@pytest.mark.parametrize("group", GROUPS.values(), ids=GROUPS)
def test_a_stem_lies_in_the_flat_batch_once(group):
    suffixes, stems = _branches(group)
    layout = BranchLayout.of([len(s) for s in suffixes], 7, CPU, stems)
    distinct = {key: tokens for key, tokens, _ in group}
    assert len(layout.positions) == sum(distinct.values()) + sum(own for *_, own in group)
    flat = [None] * len(layout.positions)
    for suffix, path in zip(suffixes, layout.paths, strict=True):
        for token, id_ in enumerate(suffix):
            place = path.place(token)
            assert flat[place] in (None, id_)
            assert layout.positions[place] == 7 + token
            flat[place] = id_
    assert None not in flat
    padded = [run.unpad(run.pad(torch.tensor(flat))) for run in layout.runs]
    assert torch.cat(padded).tolist() == flat


def test_a_branch_no_longer_than_the_stem_that_it_shares_is_refused():
    with pytest.raises(ValueError, match="longer than a stem"):
        BranchLayout.of([3, 3], 0, CPU, [Stem(0, 3), Stem(0, 3)])


def test_branches_without_stems_lie_as_they_did():
    layout = BranchLayout.of([2, 3, 40], 5, CPU)
    assert layout.positions.tolist() == [5, 6, 5, 6, 7, *range(5, 45)]
    assert layout.ends.tolist() == [1, 4, 44]
    assert [run.is_dense for run in layout.runs] == [False, True]
