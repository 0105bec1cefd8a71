"""The slots' rows of the head give the whole head's numbers."""

import pytest
import torch
from torch import nn

from semif_bento.engine.letters.head import VOCABULARY_CHUNK, SlotHead
from semif_bento.errors import ScoringFailed, StartupError

SLOTS = tuple(range(100, 132, 2))
VOCABULARY = VOCABULARY_CHUNK + 500  # more than one chunk


@pytest.fixture(autouse=True)
def _without_gradients():
    with torch.inference_mode():
        yield


def _head(dtype=torch.float32, bias=False):
    torch.manual_seed(0)
    return nn.Linear(32, VOCABULARY, bias=bias).to(dtype)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.bfloat16, 0)])
def test_slot_logits_are_the_whole_head_s(bias, dtype, tolerance):
    head = _head(dtype, bias)
    hidden = torch.randn(5, 32).to(dtype)
    found = SlotHead(head, SLOTS).logits(hidden)
    assert found.dtype == torch.float32
    assert (found - head(hidden)[:, list(SLOTS)].float()).abs().max() <= tolerance


@pytest.mark.parametrize("bias", [True, False])
def test_letter_mass_is_the_letters_part_of_the_softmax_over_the_vocabulary(bias):
    head = _head(bias=bias)
    hidden = torch.randn(3, 32) * 20  # sharp enough that the mass is not just 16 / vocabulary
    slot_head = SlotHead(head, SLOTS)
    counts = [2, 16, 5]
    found = slot_head.letter_mass(hidden, slot_head.logits(hidden), counts)
    whole = head(hidden).double().softmax(-1)
    for row, count in enumerate(counts):
        expected = float(whole[row, list(SLOTS[:count])].sum())
        assert found[row] == pytest.approx(expected, rel=1e-4)


def test_letters_that_hold_all_probability_have_a_mass_of_1_at_most():
    head = _head(bias=True)
    head.bias[:] = -1000.0
    head.bias[list(SLOTS)] = 0.0
    slot_head = SlotHead(head, SLOTS)
    hidden = torch.randn(4, 32)
    masses = slot_head.letter_mass(hidden, slot_head.logits(hidden), [16] * 4)
    assert all(0.9999 < mass <= 1.0 for mass in masses)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_slot_that_is_not_finite_is_refused(value):
    head = _head(bias=True)
    head.bias[SLOTS[3]] = value
    with pytest.raises(ScoringFailed, match="not a finite number"):
        SlotHead(head, SLOTS).logits(torch.randn(1, 32))


def test_a_vocabulary_that_is_not_finite_is_refused_where_it_is_read():
    head = _head(bias=True)
    head.bias[VOCABULARY - 1] = float("nan")
    slot_head = SlotHead(head, SLOTS)
    hidden = torch.randn(1, 32)
    slots = slot_head.logits(hidden)
    with pytest.raises(ScoringFailed, match="not a finite number"):
        slot_head.letter_mass(hidden, slots, [2])


@pytest.mark.parametrize("head", [None, nn.Sequential(nn.Linear(4, 400)), nn.Identity()])
def test_a_head_that_is_not_one_linear_layer_is_refused(head):
    with pytest.raises(StartupError, match="no plain linear head"):
        SlotHead(head, SLOTS)
