"""The prefix cache counts its bytes, keeps what is used, and a state is never written to."""

import pytest
import torch
from transformers.cache_utils import DynamicSlidingWindowLayer

from semif_bento.engine.prefix import KeyValues, PrefixCache, PrefixState, RecurrentStates
from semif_bento.errors import StartupError


def state_of(size_bytes: int) -> PrefixState:
    half = torch.zeros(1, 1, size_bytes // 8, 1)  # float32, keys and values
    return PrefixState(1, (KeyValues(half, half.clone()),))


def test_a_state_counts_every_tensor_it_holds():
    hybrid = PrefixState(
        5,
        (
            KeyValues(torch.zeros(1, 2, 5, 4, dtype=torch.bfloat16), torch.zeros(1, 2, 5, 4)),
            RecurrentStates(torch.zeros(1, 6, 3), torch.zeros(1, 2, 4, 4), 4),
        ),
    )
    assert hybrid.bytes == 40 * 2 + 40 * 4 + 18 * 4 + 32 * 4


def test_hits_and_misses_are_counted():
    cache = PrefixCache(1000)
    assert cache.get(b"a") is None
    kept = state_of(400)
    cache.put(b"a", kept)
    assert cache.get(b"a") is kept
    status = cache.status()
    assert (status.entries, status.bytes, status.capacity_bytes) == (1, 400, 1000)
    assert (status.hits, status.misses) == (1, 1)


def test_the_least_recently_used_state_goes_first():
    cache = PrefixCache(1000)
    cache.put(b"a", state_of(400))
    cache.put(b"b", state_of(400))
    assert cache.get(b"a") is not None
    cache.put(b"c", state_of(400))
    assert cache.get(b"b") is None
    assert cache.get(b"a") is not None
    assert cache.get(b"c") is not None


def test_bytes_never_pass_the_capacity_and_always_add_up():
    cache = PrefixCache(1000)
    sizes = {}
    generator = torch.Generator().manual_seed(0)
    for step in range(300):
        key = bytes([int(torch.randint(20, (1,), generator=generator))])
        size = sizes.setdefault(key, 8 * int(torch.randint(1, 130, (1,), generator=generator)))
        if cache.get(key) is None:
            cache.put(key, state_of(size))
        held = [size for key, size in sizes.items() if key in cache._states]
        assert cache.status().bytes == sum(held) <= 1000, step
        assert cache.status().entries == len(held)


def test_a_state_put_twice_counts_once():
    cache = PrefixCache(1000)
    cache.put(b"a", state_of(400))
    cache.put(b"a", state_of(400))
    assert (cache.status().entries, cache.status().bytes) == (1, 400)


def test_a_state_over_the_capacity_is_not_kept_and_pushes_nothing_out():
    cache = PrefixCache(1000)
    cache.put(b"a", state_of(400))
    cache.put(b"b", state_of(1008))
    assert cache.get(b"b") is None
    assert cache.get(b"a") is not None


def test_a_capacity_of_0_keeps_nothing():
    cache = PrefixCache(0)
    cache.put(b"a", state_of(8))
    assert cache.get(b"a") is None


def test_clearing_frees_everything_and_tells_whether_there_was_anything():
    cache = PrefixCache(1000)
    assert not cache.clear()
    cache.put(b"a", state_of(400))
    assert cache.clear()
    assert (cache.status().entries, cache.status().bytes) == (0, 0)
    assert cache.get(b"a") is None


@pytest.mark.parametrize("with_prefix", [True, False])
def test_branches_read_a_state_and_never_write_to_it(with_prefix):
    keys, values = torch.randn(2, 1, 2, 5, 4)
    conv, recurrent = torch.randn(1, 6, 3), torch.randn(1, 2, 4, 4)
    state = PrefixState(5, (KeyValues(keys, values), RecurrentStates(conv, recurrent, 4)))
    before = [t.clone() for t in (keys, values, conv, recurrent)]
    cache = state.branches(3, with_prefix=with_prefix)
    new = torch.randn(3, 2, 7, 4)
    read, _ = cache.update(new, new, 0)
    assert read.shape[2] == (12 if with_prefix else 7)
    assert torch.equal(read[:, :, -7:], new)
    cache.layers[1].update_recurrent_state(torch.randn(3, 2, 4, 4))
    joined = cache.layers[1].update_conv_state(torch.randn(3, 6, 7))
    assert torch.equal(joined[:, :, :3], conv.expand(3, -1, -1))
    after = (keys, values, conv, recurrent)
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


def test_a_kind_of_cache_layer_that_cannot_be_shared_is_refused():
    class WindowedCache:
        layers = (DynamicSlidingWindowLayer(sliding_window=8),)

    with pytest.raises(StartupError, match="DynamicSlidingWindowLayer cannot be shared"):
        PrefixState.of(WindowedCache(), 5)
