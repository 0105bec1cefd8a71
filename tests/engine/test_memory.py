"""A call that fails leaves nothing on the device, wherever it failed; the next one is right."""

import gc
import logging

import pytest
import torch
from models.faults import Followed, RecordingDevice, failing, narrow
from models.rows import generate, request_of
from models.small import load_small_scorer

from semif_bento.decisions import ScoreRequest
from semif_bento.engine.memory import BURST_SLACK_BYTES, CpuMemory, MemoryGuard, is_out_of_memory
from semif_bento.errors import InvalidRequest, OutOfMemory, RequestError, ScoringFailed

GROUPS = 3
SHARED = request_of(generate(1, 6, seed=3)[0], diagnostics=True)
OTHER = request_of(generate(2, 4, seed=4)[1])
DIRECT = ScoreRequest(SHARED.state, SHARED.decisions[:1], diagnostics=True)
DIRECT_STAGES = {
    "encode": ("_encoder", "encode", 1),
    "forward": ("_backbone", "whole", 1),
    "head": ("_head", "declared", 1),
    "diagnostics": ("_head", "letter_mass", 1),
}
SHARED_STAGES = {
    "encode": ("_encoder", "encode", 1),
    "prefill": ("_backbone", "prefill", 1),
    "first group": ("_backbone", "branches", 1),
    "last group": ("_backbone", "branches", GROUPS),
    "head": ("_head", "declared", 2),
    "diagnostics": ("_head", "letter_mass", 2),
}
STAGES = [("direct", *stage) for stage in DIRECT_STAGES.values()] + [
    ("shared", *stage) for stage in SHARED_STAGES.values()
]
STAGE_NAMES = [f"direct {name}" for name in DIRECT_STAGES] + [
    f"shared {name}" for name in SHARED_STAGES
]
EXHAUSTIONS = {
    "torch": lambda: torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
    "driver": lambda: torch.AcceleratorError("CUDA error: out of memory", 2),
    "library": lambda: RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
    "cublas": lambda: RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `c(h)`"),
    "python": MemoryError,
}


@pytest.fixture(scope="module", autouse=True)
def quick_collections():
    """Collections after failures would walk everything that is imported."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def device():
    return RecordingDevice()


@pytest.fixture
def scorer(device):
    """A scorer with an empty prefix cache, guarded on a device that records its releases."""
    small_scorer = load_small_scorer()
    narrow(small_scorer, SHARED, branches=2)
    small_scorer.forget_prefixes()
    small_scorer.guard = MemoryGuard(device, small_scorer._prefix_cache)
    small_scorer.guard.fix_baseline()
    return small_scorer


def call(scorer, mode, request=None):
    return getattr(scorer, mode)(request or (SHARED if mode == "shared" else DIRECT))


def answers(outcome):
    return outcome.scores


def break_stage(monkeypatch, scorer, stage, error):
    """Let the n-th run of a stage of the next call fail, after it has computed its result."""
    part, name, nth = stage
    owner, calls = getattr(scorer, part), []
    monkeypatch.setattr(owner, name, failing(getattr(owner, name), {nth: error}, calls))
    return calls


def frames_of(error):
    frames, traceback = [], error.__traceback__
    while traceback is not None:
        frames.append(traceback.tb_frame.f_code.co_name)
        traceback = traceback.tb_next
    return frames


@pytest.mark.parametrize(("mode", "part", "name", "nth"), STAGES, ids=STAGE_NAMES)
@pytest.mark.parametrize("exhaustion", EXHAUSTIONS)
def test_out_of_memory_at_any_stage_frees_the_call_before_it_is_raised_anew(
    monkeypatch, scorer, device, mode, part, name, nth, exhaustion
):
    before = call(scorer, mode)
    scorer.forget_prefixes()
    device.followed = Followed()
    with monkeypatch.context() as patch:
        break_stage(patch, scorer, (part, name, nth), EXHAUSTIONS[exhaustion])
        with device.followed, pytest.raises(OutOfMemory) as caught:
            call(scorer, mode)
    error = caught.value
    assert (error.status, error.code) == (503, "out_of_memory")
    assert error.retry_after_s is not None
    assert error.__cause__ is None
    assert error.__context__ is None
    assert frames_of(error)[1:] == ["call", mode, "run"]  # no frame that held a tensor
    assert device.handled_at_release == [None]
    assert device.alive_at_release == [0]
    assert name == "encode" or len(device.followed._made) > 10  # there was something to free
    assert scorer.status().prefix_cache.entries == 0
    assert answers(call(scorer, mode)) == answers(before)


@pytest.mark.parametrize("mode", ["direct", "shared"])
def test_no_tensor_survives_a_failure_at_any_operation(scorer, device, mode):
    before = call(scorer, mode)
    scorer.forget_prefixes()
    with Followed() as whole:
        call(scorer, mode)
    for operation in range(1, whole.operations, 149):
        scorer.forget_prefixes()
        device.followed = Followed(operation, EXHAUSTIONS["torch"])
        device.alive_at_release.clear()
        with device.followed, pytest.raises(OutOfMemory):
            call(scorer, mode)
        assert device.alive_at_release == [0], operation
    assert answers(call(scorer, mode)) == answers(before)


def test_what_a_successful_call_keeps_is_its_prefix_alone(scorer):
    with Followed() as followed:
        assert scorer.shared(SHARED).timing.branch_groups == GROUPS
    gc.collect()
    assert followed.alive() == 4  # keys, values, convolution state, recurrent state
    scorer.forget_prefixes()
    gc.collect()
    assert followed.alive() == 0
    with Followed() as followed:
        scorer.direct(DIRECT)
    gc.collect()
    assert followed.alive() == 0


@pytest.mark.parametrize(("mode", "part", "name", "nth"), STAGES, ids=STAGE_NAMES)
def test_out_of_memory_empties_the_prefix_cache_and_the_call_succeeds_on_its_second_try(
    monkeypatch, scorer, device, mode, part, name, nth
):
    before = call(scorer, mode)
    scorer.forget_prefixes()
    scorer.shared(OTHER)  # another request's state is what gives way
    device.followed = Followed()
    calls = break_stage(monkeypatch, scorer, (part, name, nth), EXHAUSTIONS["torch"])
    with device.followed:
        again = call(scorer, mode)
    assert answers(again) == answers(before)
    assert len(calls) > nth
    assert device.alive_at_release == [0]  # all of the first try was gone before the second
    assert device.handled_at_release == [None]
    assert scorer.status().prefix_cache.entries == (1 if mode == "shared" else 0)


def test_a_state_found_in_the_cache_gives_way_too_and_is_prefilled_anew(
    monkeypatch, scorer, device, reached
):
    before = scorer.shared(SHARED)
    device.followed = Followed()
    with monkeypatch.context() as patch, device.followed:
        break_stage(patch, scorer, ("_head", "declared", 1), MemoryError)
        reached.clear()
        again = scorer.shared(SHARED)
    assert reached == ["branches", "prefill", *["branches"] * GROUPS]
    assert not again.timing.cache_hit
    assert answers(again) == answers(before)
    assert scorer.shared(SHARED).timing.cache_hit


def test_a_call_is_tried_twice_at_most(monkeypatch, scorer, device):
    scorer.shared(OTHER)
    both = {1: EXHAUSTIONS["torch"], 2: EXHAUSTIONS["torch"]}
    calls: list[int] = []
    prefill = scorer._backbone.prefill
    monkeypatch.setattr(scorer._backbone, "prefill", failing(prefill, both, calls))
    device.followed = Followed()
    with device.followed, pytest.raises(OutOfMemory):
        scorer.shared(SHARED)
    assert calls == [1, 2]
    assert device.alive_at_release == [0, 0]
    assert scorer.status().prefix_cache.entries == 0


def test_with_nothing_to_give_way_a_call_is_tried_once(monkeypatch, scorer, device):
    calls = break_stage(monkeypatch, scorer, ("_backbone", "prefill", 1), MemoryError)
    with pytest.raises(OutOfMemory):
        scorer.shared(SHARED)
    assert calls == [1]
    assert len(device.alive_at_release) == 1


@pytest.mark.parametrize(("mode", "part", "name", "nth"), STAGES, ids=STAGE_NAMES)
@pytest.mark.parametrize(
    "error",
    [
        lambda: RuntimeError("CUDA error: device-side assert triggered"),
        lambda: ValueError("the state says: out of memory"),
        lambda: ScoringFailed("The model gave a logit that is not a finite number."),
    ],
    ids=["library", "words of a request", "known"],
)
def test_any_other_failure_is_scoring_failed_and_frees_the_call_as_well(
    monkeypatch, scorer, device, mode, part, name, nth, error
):
    before = call(scorer, mode)
    scorer.shared(OTHER)
    entries = scorer.status().prefix_cache.entries
    device.followed = Followed()
    with monkeypatch.context() as patch:
        calls = break_stage(patch, scorer, (part, name, 1), error)
        with device.followed, pytest.raises(ScoringFailed) as caught:
            call(scorer, mode, DIRECT if mode == "direct" else fresh(SHARED))
    assert calls == [1]
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert frames_of(caught.value)[1:] == ["call", mode, "run"]
    assert device.handled_at_release == [None]
    assert device.alive_at_release == [0]
    assert scorer.status().prefix_cache.entries == entries  # nothing added, nothing given up
    assert answers(call(scorer, mode)) == answers(before)


def fresh(request):
    """The same decisions about a state that no cache holds."""
    return ScoreRequest(["A state of its own.", request.state], request.decisions, True)


@pytest.mark.parametrize("mode", ["direct", "shared"])
def test_an_unknown_failure_frees_its_tensors(scorer, device, mode):
    device.followed = Followed(100, lambda: RuntimeError("something else"))
    with device.followed, pytest.raises(ScoringFailed):
        call(scorer, mode)
    assert device.alive_at_release == [0]


def test_a_refused_request_reaches_no_model_and_costs_no_collection(
    monkeypatch, scorer, device, reached
):
    collections = []
    monkeypatch.setattr(gc, "collect", lambda: collections.append(1))
    long = ScoreRequest("word " * 5000, SHARED.decisions)
    for mode in ("direct", "shared"):
        with pytest.raises(InvalidRequest) as caught:
            call(scorer, mode, long)
        assert caught.value.__context__ is None
    assert reached == []
    assert collections == []
    assert device.alive_at_release == []


@pytest.mark.parametrize("mode", ["direct", "shared"])
@pytest.mark.parametrize("is_refused", [False, True], ids=["answered", "refused"])
def test_a_burst_goes_back_after_every_call_and_what_rests_or_is_cached_stays(
    scorer, device, mode, is_refused
):
    scorer.shared(SHARED)
    kept = scorer.status().prefix_cache.bytes
    assert kept > 0
    request = ScoreRequest("word " * 5000, SHARED.decisions) if is_refused else None

    def ask():
        try:
            call(scorer, mode, request)
        except RequestError:
            assert is_refused

    device.reserved = BURST_SLACK_BYTES + kept
    ask()
    assert device.alive_at_release == []
    device.reserved += 1
    ask()
    assert len(device.alive_at_release) == 1


def test_the_baseline_is_what_was_reserved_when_it_was_fixed(scorer, device):
    device.reserved = 7 * BURST_SLACK_BYTES
    scorer.guard.fix_baseline()
    device.reserved += BURST_SLACK_BYTES
    scorer.direct(DIRECT)
    assert device.alive_at_release == []
    device.reserved += 1
    scorer.direct(DIRECT)
    assert len(device.alive_at_release) == 1


@pytest.mark.parametrize("error", [RuntimeError, MemoryError, ValueError])
def test_log_lines_name_the_failure_and_its_place_and_never_the_request(
    monkeypatch, scorer, caplog, error
):
    secret = SHARED.decisions[2].question
    break_stage(monkeypatch, scorer, ("_backbone", "prefill", 1), lambda: error(secret))
    with caplog.at_level(logging.DEBUG), pytest.raises(RequestError) as caught:
        scorer.shared(SHARED)
    assert secret not in caplog.text
    assert secret not in caught.value.message
    if caught.value.code == "scoring_failed":
        assert error.__name__ in caplog.text
        assert "_shared" in caplog.text


def test_the_host_allocators_own_refusal_counts_as_out_of_memory():
    with pytest.raises(RuntimeError) as refused:
        torch.empty(2**55, dtype=torch.uint8)
    assert is_out_of_memory(refused.value)


@pytest.mark.parametrize("exhaustion", EXHAUSTIONS)
def test_every_kind_of_exhaustion_is_told_from_other_failures(exhaustion):
    assert is_out_of_memory(EXHAUSTIONS[exhaustion]())


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("CUDA error: an illegal memory access was encountered"),
        KeyError("CUDA out of memory"),
        ValueError("out of memory"),
        OverflowError("can't allocate memory"),
    ],
)
def test_other_failures_are_not_taken_for_exhaustion(error):
    assert not is_out_of_memory(error)


def test_the_hosts_resident_set_grows_with_what_is_touched():
    memory = CpuMemory()
    before = memory.reserved_bytes()
    touched = torch.ones(2**26, dtype=torch.uint8)
    assert memory.reserved_bytes() - before > 2**25
    assert memory.allocated_bytes() > before
    assert touched.numel() == 2**26
