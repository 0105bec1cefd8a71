"""2,000 mixed requests leave the memory of the process where it was."""

import gc
import random
from collections import Counter
from dataclasses import replace

import pytest
import torch
from models.faults import RecordingDevice, failing
from models.rows import generate, request_of
from models.small import load_small_scorer

from semif_bento.decisions import ScoreRequest
from semif_bento.engine.memory import CpuMemory, MemoryGuard
from semif_bento.engine.prefix import PrefixCache
from semif_bento.errors import RequestError

REQUESTS = 2000
WARM_UP = 400
STATES = [request_of(rows) for rows in generate(40, 3, seed=12)]
KINDS = ("direct", "direct diagnostics", "shared", "shared diagnostics", "too long", "exhausted")
WEIGHTS = (8, 1, 8, 1, 1, 1)


@pytest.fixture
def scorer(monkeypatch):
    """A scorer whose prefix cache holds a few of the states, so that there are hits and misses."""
    small_scorer = load_small_scorer()
    monkeypatch.setattr(small_scorer, "_prefix_cache", cache := PrefixCache(8 * 120_000))
    guard = MemoryGuard(RecordingDevice(), cache)
    monkeypatch.setattr(small_scorer, "guard", guard)
    workspace = replace(small_scorer._workspace, prefix_cache=cache, guard=guard)
    monkeypatch.setattr(small_scorer, "_workspace", workspace)
    return small_scorer


def ask(scorer, kind, random_):
    """Ask one request of a kind; return its answer's status."""
    known = random_.choice(STATES)
    is_diagnosed = kind.endswith("diagnostics")
    is_shared = kind.startswith(("shared", "exhausted"))
    decisions = known.decisions if is_shared else known.decisions[:1]
    state = "word " * 5000 if kind == "too long" else known.state
    request = ScoreRequest(state, decisions, is_diagnosed)
    with pytest.MonkeyPatch.context() as patch:
        if kind == "exhausted":
            scorer.forget_prefixes()
            branches = failing(scorer._backbone.branches, {1: MemoryError}, [])
            patch.setattr(scorer._backbone, "branches", branches)
        try:
            (scorer.shared if is_shared else scorer.direct)(request)
        except RequestError as error:
            return error.status
    return 200


def footprint():
    """Resident bytes, live tensors and live objects after a collection."""
    gc.collect()
    objects = gc.get_objects()
    tensors = sum(issubclass(type(thing), torch.Tensor) for thing in objects)
    return CpuMemory().reserved_bytes(), tensors, len(objects)


@pytest.mark.platform
def test_memory_stays_flat_over_2000_mixed_requests(scorer):
    random_ = random.Random(13)
    statuses: Counter[int] = Counter()
    gc.collect()
    gc.freeze()  # what was there before cannot leak here, and need not be walked
    try:
        for index in range(REQUESTS):
            if index == WARM_UP:
                scorer.forget_prefixes()
                resident, tensors, objects = footprint()
            (kind,) = random_.choices(KINDS, WEIGHTS)
            statuses[ask(scorer, kind, random_)] += 1
        counts = scorer.status().prefix_cache
        scorer.forget_prefixes()
        resident_after, tensors_after, objects_after = footprint()
    finally:
        gc.unfreeze()
    assert set(statuses) == {200, 422, 503}
    assert min(statuses.values()) > REQUESTS / 40
    assert counts.hits > 100
    assert counts.misses > 100
    assert counts.bytes <= counts.capacity_bytes
    assert tensors_after <= tensors
    assert objects_after - objects < 200  # a leak of one object a request would be 1,600
    assert resident_after - resident < 16 * 2**20
