"""The scheduler alone: one slot, admission, deadline, departure, translation."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from semif_bento.backend import Backend
from semif_bento.caller import Caller
from semif_bento.decisions import EngineStatus, ModelIdentity, PrefixCacheStatus
from semif_bento.errors import (
    ClientClosed,
    InvalidRequest,
    OutOfMemory,
    Overloaded,
    ScoringFailed,
    ScoringTimeout,
    StartupError,
)
from semif_bento.serving.scheduler import Scheduler


class IdleScorer:
    """Knows the thread that loaded it; the jobs of these tests do the rest."""

    identity = ModelIdentity("idle", "r1", "float32", "cpu", "0", "0")
    slot_count = 16

    def __init__(self) -> None:
        self.thread = threading.get_ident()

    most_options = 255

    def direct(self, request: object, caller: object = None) -> Any:
        raise NotImplementedError

    shared = direct

    def status(self) -> EngineStatus:
        return EngineStatus(
            "idle", 0.0, 0.0, "none", "none", "native", 0.0, PrefixCacheStatus(0, 0, 0, 0, 0)
        )


class Work:
    """A job that holds the slot until it is let go, and knows how often it ran."""

    def __init__(self) -> None:
        self.started, self.may_end = threading.Event(), threading.Event()
        self.runs = 0

    def __call__(self, caller: Caller) -> int:
        self.runs += 1
        self.started.set()
        assert self.may_end.wait(10)
        return self.runs


def on_scheduler(
    test: Callable[[Scheduler], Coroutine[Any, Any, None]],
    max_waiting: int = 1,
    timeout_s: float = 10,
    slots: int = 1,
) -> None:
    scheduler = Scheduler(max_waiting, timeout_s)
    scheduler.open(lambda: Backend({"letters": IdleScorer()}, slots=slots))
    try:
        asyncio.run(test(scheduler))
    finally:
        scheduler.close()


def run(scheduler: Scheduler, job: Callable[[Any], Any]) -> asyncio.Task[Any]:
    return asyncio.ensure_future(scheduler.run("letters", "direct", job, time.monotonic()))


async def started(work: Work) -> None:
    assert await asyncio.to_thread(work.started.wait, 10)


def test_jobs_run_on_the_thread_that_loaded_the_scorer():
    async def test(scheduler: Scheduler) -> None:
        scorer: Any = scheduler.backend.engines["letters"]
        assert await run(scheduler, lambda caller: threading.get_ident()) == scorer.thread

    on_scheduler(test)


def test_a_second_job_starts_only_after_the_first_has_ended():
    async def test(scheduler: Scheduler) -> None:
        first, second = Work(), Work()
        second.may_end.set()
        tasks = [run(scheduler, first), run(scheduler, second)]
        await started(first)
        await asyncio.sleep(0.05)
        assert second.runs == 0
        first.may_end.set()
        assert await asyncio.gather(*tasks) == [1, 1]

    on_scheduler(test)


def test_a_job_over_the_queue_limit_is_refused_and_never_runs():
    async def test(scheduler: Scheduler) -> None:
        running, waiting, refused = Work(), Work(), Work()
        tasks = [run(scheduler, running), run(scheduler, waiting)]
        await started(running)
        with pytest.raises(Overloaded) as caught:
            await run(scheduler, refused)
        assert 1 <= (caught.value.retry_after_s or 0) <= 10
        for work in (running, waiting):
            work.may_end.set()
        await asyncio.gather(*tasks)
        assert refused.runs == 0

    on_scheduler(test)


def test_without_waiting_room_a_free_slot_is_still_taken():
    async def test(scheduler: Scheduler) -> None:
        assert await run(scheduler, lambda caller: 1) == 1
        assert await run(scheduler, lambda scorer: 2) == 2

    on_scheduler(test, max_waiting=0)


def test_retry_after_grows_with_the_queue_and_stays_within_10_s():
    async def test(scheduler: Scheduler) -> None:
        waits = []
        for recent_s in (0.001, 1.5, 1000.0):
            scheduler._recent_s = recent_s
            running = Work()
            tasks = [run(scheduler, running), run(scheduler, lambda scorer: None)]
            await started(running)
            with pytest.raises(Overloaded) as caught:
                await run(scheduler, lambda scorer: None)
            waits.append(caught.value.retry_after_s)
            running.may_end.set()
            await asyncio.gather(*tasks)
        assert waits == [1, 3, 10]

    on_scheduler(test)


def test_a_timeout_keeps_the_slot_until_the_work_has_ended():
    async def test(scheduler: Scheduler) -> None:
        running, refused = Work(), Work()
        with pytest.raises(ScoringTimeout):
            await run(scheduler, running)
        with pytest.raises(Overloaded):
            await run(scheduler, refused)
        running.may_end.set()
        await asyncio.to_thread(scheduler.close)
        assert (running.runs, refused.runs) == (1, 0)

    on_scheduler(test, max_waiting=0, timeout_s=0.5)


def test_the_deadline_counts_from_the_arrival():
    async def test(scheduler: Scheduler) -> None:
        with pytest.raises(ScoringTimeout):
            await scheduler.run("letters", "direct", lambda caller: 1, time.monotonic() - 11)

    on_scheduler(test)


def test_a_caller_that_leaves_while_waiting_is_dropped_and_frees_its_place():
    async def test(scheduler: Scheduler) -> None:
        running, left, asked = Work(), Work(), Work()
        first = run(scheduler, running)
        await started(running)
        second = run(scheduler, left)
        await asyncio.sleep(0.05)
        second.cancel()
        await asyncio.wait({second})
        third = run(scheduler, asked)
        for work in (running, left, asked):
            work.may_end.set()
        await asyncio.gather(first, third)
        assert (left.runs, asked.runs) == (0, 1)

    on_scheduler(test)


def test_a_job_is_told_that_its_caller_has_left_and_may_stop():
    async def test(scheduler: Scheduler) -> None:
        told, may_look = threading.Event(), threading.Event()

        def job(caller: Caller) -> None:
            caller.on_leaving(told.set)
            may_look.set()
            assert told.wait(10)
            caller.require_presence()
            raise AssertionError

        running = run(scheduler, job)
        assert await asyncio.to_thread(may_look.wait, 10)
        assert not told.is_set()
        running.cancel()
        await asyncio.wait({running})
        assert await run(scheduler, lambda caller: caller.require_presence() or 1) == 1

    on_scheduler(test)


def test_a_job_is_told_that_its_time_is_up():
    told = threading.Event()

    async def test(scheduler: Scheduler) -> None:
        with pytest.raises(ScoringTimeout):
            await run(scheduler, lambda caller: caller.on_leaving(told.set) or told.wait(10))

    on_scheduler(test, timeout_s=0.2)
    assert told.is_set()


def test_who_asks_after_a_caller_has_left_is_told_at_once():
    caller, told = Caller(), threading.Event()
    caller.leave()
    caller.on_leaving(told.set)
    assert told.is_set()
    with pytest.raises(ClientClosed):
        caller.require_presence()


def test_as_many_jobs_run_at_once_as_there_are_slots_and_no_more():
    async def test(scheduler: Scheduler) -> None:
        first, second, third, refused = Work(), Work(), Work(), Work()
        tasks = [run(scheduler, first), run(scheduler, second), run(scheduler, third)]
        await started(first)
        await started(second)
        await asyncio.sleep(0.05)
        assert third.runs == 0
        with pytest.raises(Overloaded):
            await run(scheduler, refused)
        for work in (first, second, third):
            work.may_end.set()
        assert await asyncio.gather(*tasks) == [1, 1, 1]
        assert refused.runs == 0

    on_scheduler(test, max_waiting=1, slots=2)


def test_a_caller_that_leaves_while_running_does_not_free_the_slot():
    async def test(scheduler: Scheduler) -> None:
        running, asked = Work(), Work()
        first = run(scheduler, running)
        await started(running)
        first.cancel()
        await asyncio.wait({first})
        second = run(scheduler, asked)
        await asyncio.sleep(0.05)
        assert asked.runs == 0
        running.may_end.set()
        asked.may_end.set()
        assert await second == 1

    on_scheduler(test)


@pytest.mark.parametrize("error", [InvalidRequest("a."), OutOfMemory("b."), ScoringFailed("c.")])
def test_our_own_errors_pass_as_they_are(error):
    async def test(scheduler: Scheduler) -> None:
        def fail(caller: object) -> None:
            raise error

        with pytest.raises(type(error)) as caught:
            await run(scheduler, fail)
        assert caught.value is error

    on_scheduler(test)


@pytest.mark.parametrize("kind", [KeyError, TimeoutError, RuntimeError, RecursionError])
def test_any_other_error_is_scoring_failed_logged_without_its_message(kind, caplog):
    words = "the caller's own words"

    async def test(scheduler: Scheduler) -> None:
        def fail(caller: object) -> None:
            raise kind(words)

        with pytest.raises(ScoringFailed) as caught:
            await run(scheduler, fail)
        assert caught.value.__context__ is None
        assert await run(scheduler, lambda caller: 1) == 1

    with caplog.at_level(logging.ERROR):
        on_scheduler(test)
    assert kind.__name__ in caplog.text
    assert "in fail" in caplog.text
    assert words not in caplog.text


def test_a_scorer_that_cannot_load_fails_the_opening():
    def load() -> Backend:
        raise StartupError("No weights.")

    scheduler = Scheduler(1, 10)
    with pytest.raises(StartupError, match="No weights"):
        scheduler.open(load)
    scheduler.close()
