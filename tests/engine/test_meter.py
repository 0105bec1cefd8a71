"""The meter counts what is allocated, and nothing that is not."""

import pytest
import torch
from torch.nn import functional

from semif_bento.engine.meter import PeakMeter


@pytest.fixture(params=[False, True], ids=["plain", "inference"], autouse=True)
def _inference(request):
    with torch.inference_mode(request.param):
        yield


def test_the_peak_is_the_largest_sum_alive_at_once():
    with PeakMeter() as meter:
        first = torch.zeros(1000)
        second = torch.zeros(500)
        assert meter.peak_bytes == 6000
        del first
        third = torch.zeros(200)
        assert meter.peak_bytes == 6000
        fourth = torch.zeros(1000)
    assert meter.peak_bytes == (500 + 200 + 1000) * 4
    del second, third, fourth


def test_every_dtype_counts_its_own_bytes():
    with PeakMeter() as meter:
        kept = [torch.zeros(10, dtype=t) for t in (torch.bfloat16, torch.int64, torch.bool)]
    assert meter.peak_bytes == 20 + 80 + 10
    assert len(kept) == 3


def test_views_and_operations_in_place_count_nothing():
    outside = torch.ones(4, 100)
    with PeakMeter() as meter:
        view = outside.view(100, 4)[10:].transpose(0, 1).unsqueeze(0).expand(5, -1, -1)
        outside.add_(1).mul_(2)
        outside[0] = 3
        outside.reshape(2, 200).copy_(torch.ones(()))
    assert meter.peak_bytes <= 4  # the one scalar
    assert view.shape == (5, 4, 90)


def test_a_view_keeps_its_storage_counted():
    with PeakMeter() as meter:
        view = torch.zeros(1000)[:1]
        torch.zeros(1000)
    assert meter.peak_bytes == 8000
    assert view.numel() == 1


def test_a_storage_made_within_and_written_in_place_counts_once():
    with PeakMeter() as meter:
        made = torch.zeros(1000)
        for _ in range(5):
            made.add_(1)
            made.relu_()
    assert meter.peak_bytes == 4000


def test_temporaries_of_an_operation_made_of_others_count():
    query, key = torch.zeros(4, 2, 30, 16), torch.zeros(4, 2, 500, 16)
    mask = torch.ones(1, 1, 30, 500, dtype=torch.bool).expand(4, 1, 30, 500)
    with PeakMeter() as meter:
        functional.scaled_dot_product_attention(query, key, key, attn_mask=mask)
    assert meter.peak_bytes > 4 * 30 * 500 * 4  # the mask as numbers, once a branch


def test_each_phase_has_its_own_peak():
    meter = PeakMeter()
    with meter:
        meter.phase = "a"
        kept = torch.zeros(100)
        meter.phase = "b"
        torch.zeros(1000)
        meter.phase = "a"
        also = torch.zeros(50)
    assert meter.phase_peaks == {"a": 600, "b": 4400}
    assert meter.peak_bytes == 4400
    assert kept.numel() + also.numel() == 150


def test_the_result_is_what_it_is_without_the_meter():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(7, 33, generator=generator)
    layer = torch.nn.Linear(33, 5).requires_grad_(False)
    expected = layer(x).softmax(-1)
    with PeakMeter():
        found = layer(x).softmax(-1)
    assert torch.equal(found, expected)


def test_nothing_was_allocated_without_an_allocation():
    with PeakMeter() as meter:
        pass
    assert meter.peak_bytes == 0
