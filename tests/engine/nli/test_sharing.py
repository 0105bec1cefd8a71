"""What inputs share, found from their ids alone."""

import random

import pytest
import torch

from semif_bento.engine.layout import BranchLayout
from semif_bento.engine.nli import sharing
from semif_bento.engine.nli.encoding import EncodedInput
from semif_bento.engine.nli.sharing import LEVELS, Beginning, find_beginnings


def given(prefix, suffix):
    return EncodedInput(tuple(prefix), tuple(suffix), "")


def paths(beginning, before=()):
    """The ids before each row's own, by row."""
    ids = before + beginning.ids
    found = dict.fromkeys(beginning.rows, ids)
    for child in beginning.children:
        found |= paths(child, ids)
    return found


def forwards(beginning):
    return [beginning, *(one for child in beginning.children for one in forwards(child))]


@pytest.fixture
def eager(monkeypatch):
    """Share whatever saves a token."""
    monkeypatch.setattr(sharing, "MIN_SAVED_TOKENS", 1)


@pytest.mark.usefixtures("eager")
def test_the_published_vector_of_three_rows():
    rows = [given((), ids) for ids in ([10, 11, 1, 2], [10, 11, 3], [10, 11, 4, 5, 6])]
    root = find_beginnings(rows, kept_tokens=0)
    assert (root.rows, [child.ids for child in root.children]) == ([], [(10, 11)])
    assert sorted(root.children[0].rows) == [0, 1, 2]
    layout = BranchLayout.of([1, 2, 3], prefix_length=2, device=torch.device("cpu"))
    [run] = layout.runs
    mask = torch.zeros(3 * run.width, dtype=torch.long).index_fill(0, run.scatter, 1)
    prefix = torch.ones(3, 2, dtype=torch.long)
    assert torch.cat([prefix, mask.reshape(3, -1)], dim=1).tolist() == [
        [1, 1, 1, 0, 0],
        [1, 1, 1, 1, 0],
        [1, 1, 1, 1, 1],
    ]


def test_a_premise_is_read_once_for_all_its_hypotheses():
    root = find_beginnings([given(range(100), [n, 7]) for n in range(3)], kept_tokens=0)
    [premise] = root.children
    assert (premise.length, sorted(premise.rows), premise.children) == (100, [0, 1, 2], [])


def test_an_instruction_within_a_premise_is_read_once_for_its_options():
    premise, instructions = list(range(200)), [list(range(300, 400)), list(range(500, 600))]
    rows = [given(premise, [*words, option]) for words in instructions for option in (1, 2, 3)]
    [outer] = find_beginnings(rows, kept_tokens=0).children
    assert outer.rows == []
    assert [(child.length, sorted(child.rows)) for child in outer.children] == [
        (300, [0, 1, 2]),
        (300, [3, 4, 5]),
    ]


def test_a_short_instruction_is_not_worth_a_forward_of_its_own():
    rows = [given(range(200), [1, 2, 3, option]) for option in (7, 8, 9)]
    [premise] = find_beginnings(rows, kept_tokens=0).children
    assert (sorted(premise.rows), premise.children) == ([0, 1, 2], [])


def test_a_premise_with_one_hypothesis_is_read_apart_only_where_it_may_come_again():
    rows = [given(range(200), [1])]
    assert find_beginnings(rows, kept_tokens=199).rows == [0]
    assert find_beginnings(rows, kept_tokens=200).children[0].rows == [0]


def test_a_long_instruction_behind_short_and_equal_premises_is_shared_with_them():
    rows = [given([1, 2], [*range(300), option]) for option in (7, 8)]
    [both] = find_beginnings(rows, kept_tokens=1000).children
    assert (both.length, sorted(both.rows)) == (302, [0, 1])


@pytest.mark.usefixtures("eager")
def test_one_input_that_begins_another_keeps_a_token_of_its_own():
    rows = [given((), range(length)) for length in (3, 5, 9)]
    root = find_beginnings(rows, kept_tokens=0)
    for row, before in paths(root).items():
        assert len(before) < len(rows[row].suffix_ids)


@pytest.mark.usefixtures("eager")
def test_inputs_nested_a_thousand_deep_are_parted_to_a_bounded_depth():
    rows = [given((), range(length)) for length in range(1, 1001)]
    root = find_beginnings(rows, kept_tokens=0)
    assert sorted(paths(root)) == list(range(1000))

    def depth(beginning: Beginning) -> int:
        return 1 + max(map(depth, beginning.children), default=0)

    assert depth(root) <= LEVELS + 1


def random_inputs(seed):
    source = random.Random(seed)
    words = [tuple(source.randrange(4) for _ in range(source.randint(1, 60))) for _ in range(6)]
    made = set()
    while len(made) < 40:
        prefix = source.choice([(), *words[:3]])
        suffix = tuple(t for _ in range(source.randint(1, 3)) for t in source.choice(words))
        made.add((prefix, suffix))
    return [given(*parts) for parts in sorted(made)]


@pytest.mark.parametrize("seed", range(20))
def test_every_input_lies_in_one_beginning_that_is_truly_its_own(seed, monkeypatch):
    monkeypatch.setattr(sharing, "MIN_SAVED_TOKENS", 1 + seed * 5)
    rows = random_inputs(seed)
    root = find_beginnings(rows, kept_tokens=1000 * (seed % 2))
    found = paths(root)
    assert sorted(found) == sorted(root.all_rows()) == list(range(len(rows)))
    for row, before in found.items():
        whole = rows[row].prefix_ids + rows[row].suffix_ids
        assert whole[: len(before)] == before
        assert len(before) < len(whole)
    for beginning in forwards(root)[1:]:
        assert len(beginning.ids) >= 1
        assert len({paths(root)[row][: beginning.length] for row in beginning.all_rows()}) == 1


@pytest.mark.parametrize("seed", range(5))
def test_what_is_shared_does_not_depend_on_the_order(seed):
    rows = random_inputs(seed)
    order = list(range(len(rows)))
    random.Random(seed).shuffle(order)
    straight = paths(find_beginnings(rows, kept_tokens=0))
    shuffled = paths(find_beginnings([rows[row] for row in order], kept_tokens=0))
    assert {order[row]: before for row, before in shuffled.items()} == straight
