"""The same request gives the same bits, whatever ran before it and whatever the cache holds."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from models.faults import RecordingDevice, failing, narrow
from models.rows import generate, request_of
from models.small import load_small_scorer

from semif_bento.decisions import Decision, ScoreRequest
from semif_bento.engine.memory import MemoryGuard
from semif_bento.engine.prefix import PrefixCache
from semif_bento.errors import InvalidRequest

PROJECT = Path(__file__).parents[2]
REQUEST = request_of(generate(4, 9, seed=5)[3], diagnostics=True)
DIRECT = ScoreRequest(REQUEST.state, REQUEST.decisions[4:5], diagnostics=True)
OTHERS = [request_of(rows) for rows in generate(5, 3, seed=6)]
LARGE = request_of(generate(1, 64, seed=7)[0])
LARGE_ABOUT_THE_SAME_STATE = ScoreRequest(REQUEST.state, LARGE.decisions)


@pytest.fixture
def scorer():
    """A scorer that has to split the request and the large one into groups, its cache empty."""
    small_scorer = load_small_scorer()
    narrow(small_scorer, LARGE, branches=3)
    small_scorer.forget_prefixes()
    small_scorer.guard = MemoryGuard(RecordingDevice(), small_scorer._prefix_cache)
    return small_scorer


@pytest.fixture
def alone(scorer):
    """What the request gives alone, prefilled."""
    outcome = scorer.shared(REQUEST)
    assert not outcome.timing.cache_hit
    assert 1 < outcome.timing.branch_groups < len(REQUEST.decisions)
    scorer.forget_prefixes()
    return outcome


def same(outcome, expected):
    """The same bits and the same work; only times and the cache's part may differ."""
    work = ("prefix_tokens", "true_suffix_tokens", "padded_suffix_tokens", "branch_groups")
    assert outcome.scores == expected.scores
    assert [getattr(outcome.timing, name) for name in work] == [
        getattr(expected.timing, name) for name in work
    ]


def test_after_other_requests(scorer, alone):
    for request in (*OTHERS, LARGE):
        scorer.shared(request)
    scorer.direct(DIRECT)
    same(scorer.shared(REQUEST), alone)


def test_from_the_cache(scorer, alone):
    scorer.shared(REQUEST)
    for _ in range(3):
        again = scorer.shared(REQUEST)
        assert again.timing.cache_hit
        same(again, alone)


def test_from_a_state_that_another_request_left_in_the_cache(scorer, alone):
    scorer.shared(ScoreRequest(REQUEST.state, OTHERS[0].decisions))
    again = scorer.shared(REQUEST)
    assert again.timing.cache_hit
    same(again, alone)


def test_after_its_state_was_pushed_out(monkeypatch, scorer, alone):
    monkeypatch.setattr(scorer, "_prefix_cache", cache := PrefixCache(300_000))
    monkeypatch.setattr(scorer, "guard", MemoryGuard(RecordingDevice(), cache))
    scorer.shared(REQUEST)
    for request in OTHERS:
        scorer.shared(request)
    again = scorer.shared(REQUEST)
    assert not again.timing.cache_hit
    same(again, alone)


def test_without_a_cache(monkeypatch, scorer, alone):
    monkeypatch.setattr(scorer, "_prefix_cache", PrefixCache(0))
    same(scorer.shared(REQUEST), alone)
    same(scorer.shared(REQUEST), alone)


def test_interleaved_with_64_decisions(scorer, alone):
    large = scorer.shared(LARGE)
    assert large.timing.branch_groups > 5
    for _ in range(2):
        same(scorer.shared(REQUEST), alone)
        same(scorer.shared(LARGE), large)
        scorer.shared(LARGE_ABOUT_THE_SAME_STATE)
    same(scorer.shared(REQUEST), alone)


@pytest.mark.parametrize("is_cached", [False, True])
def test_after_out_of_memory(monkeypatch, scorer, alone, is_cached):
    scorer.shared(REQUEST if is_cached else OTHERS[0])
    calls: list[int] = []
    with monkeypatch.context() as patch:
        branches = scorer._backbone.branches
        exhausted = {2: lambda: torch.OutOfMemoryError("CUDA out of memory.")}
        patch.setattr(scorer._backbone, "branches", failing(branches, exhausted, calls))
        again = scorer.shared(REQUEST)  # the second group fails, the cache gives way
    assert len(calls) == 2 + again.timing.branch_groups
    same(again, alone)
    same(scorer.shared(REQUEST), alone)


def test_after_a_refused_request(scorer, alone):
    with pytest.raises(InvalidRequest):
        scorer.shared(ScoreRequest("word " * 9000, REQUEST.decisions))
    same(scorer.shared(REQUEST), alone)


def test_grouping_and_bits_ignore_the_memory_of_the_moment(scorer, alone):
    device = RecordingDevice()
    scorer.guard = MemoryGuard(device, scorer._prefix_cache)
    scorer.guard.fix_baseline()
    for reserved in (0, 2**30, 2**40):
        device.reserved = reserved
        same(scorer.shared(REQUEST), alone)


def test_direct_answers_never_depend_on_the_cache(scorer, reached):
    expected = scorer.direct(DIRECT).scores
    counts = scorer.status().prefix_cache
    for request in (REQUEST, REQUEST, *OTHERS, LARGE):
        scorer.shared(request)
        reached.clear()
        before = scorer.status().prefix_cache
        assert scorer.direct(DIRECT).scores == expected
        assert reached == ["whole"]
        assert scorer.status().prefix_cache == before
    assert counts.entries == 0


def test_the_order_of_decisions_moves_no_answer_to_another_place(scorer, alone):
    backwards = ScoreRequest(REQUEST.state, REQUEST.decisions[::-1], diagnostics=True)
    turned = scorer.shared(backwards)
    assert [s.decision_id for s in turned.scores] == [d.id for d in backwards.decisions]
    for found, expected in zip(turned.scores[::-1], alone.scores, strict=True):
        assert found.prompt_sha256 == expected.prompt_sha256
        assert found.option_ids == expected.option_ids
        assert found.option_logits == pytest.approx(expected.option_logits, abs=1e-4)


def test_identical_decisions_in_one_request_are_answered_alike(scorer):
    first = REQUEST.decisions[0]
    copies = [Decision(f"copy {n}", first.question, first.options) for n in range(5)]
    outcome = scorer.shared(ScoreRequest(REQUEST.state, (*copies, *REQUEST.decisions[1:])))
    assert [s.decision_id for s in outcome.scores[:5]] == [copy.id for copy in copies]
    for scores in outcome.scores[1:5]:
        assert scores.prompt_sha256 == outcome.scores[0].prompt_sha256
        expected = outcome.scores[0].option_logits
        assert scores.option_logits == pytest.approx(expected, abs=1e-4)


FRESH_PROCESS = """
from models.byte_qwen import build_byte_qwen
from models.faults import narrow
from models.rows import generate, request_of
from models.scorers import assemble

scorer = assemble(build_byte_qwen(), max_tokens=8192)
for rows in generate(3, 6, seed=8):
    narrow(scorer, request_of(rows), branches=2)
    outcome = scorer.shared(request_of(rows))
    print(outcome.timing.branch_groups)
    for scores in (*outcome.scores, scorer.direct(request_of(rows[:1])).scores):
        print([logit.hex() for logit in scores.option_logits])
"""


@pytest.mark.platform
def test_two_fresh_processes_give_the_same_bits():
    started = [
        subprocess.Popen(
            [sys.executable, "-c", FRESH_PROCESS],
            env={
                **os.environ,
                "PYTHONPATH": f"{PROJECT}{os.pathsep}{PROJECT / 'tests'}",
                "PYTHONHASHSEED": hash_seed,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for hash_seed in ("1", "2")
    ]
    ended = [process.communicate(timeout=240) for process in started]
    assert [process.returncode for process in started] == [0, 0], ended[0][1]
    assert ended[0][0] == ended[1][0]
    assert len(ended[0][0].splitlines()) == 3 * 8
