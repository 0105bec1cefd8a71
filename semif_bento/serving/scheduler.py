"""The scheduler before the scoring slots: who may wait, for how long, and whose turn it is.

Knows nothing of HTTP or torch. It guards one process: two processes on one card are two schedulers.
"""

import asyncio
import logging
import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Literal, TypeVar

from semif_bento.backend import Backend
from semif_bento.caller import Caller
from semif_bento.decisions import PrefixCacheStatus
from semif_bento.errors import (
    EngineFault,
    OutOfMemory,
    Overloaded,
    RequestError,
    ScoringFailed,
    ScoringTimeout,
    StartupError,
)
from semif_bento.serving import failures, metrics

Mode = Literal["direct", "shared", "classify"]
Labels = tuple[str, Mode]
T = TypeVar("T")

RECENT_SHARE = 0.25  # weight of the newest call in the mean behind Retry-After
LONGEST_RETRY_AFTER_S = 10

log = logging.getLogger(__name__)


class Scheduler:
    """Runs jobs on the engines of one backend, as many at a time as it has slots.

    With one slot a job runs on the thread that loaded the engines. A slot is free only when its
    job has ended, not when its caller has left or timed out; the job is told, and may end sooner.
    A job that still waits is dropped as soon as its caller is cancelled.

    Args:
        max_waiting: how many jobs may wait behind the running ones (0 or more).
        timeout_s: longest time from a request's arrival to its answer (over 0).
    """

    def __init__(self, max_waiting: int, timeout_s: float) -> None:
        self._max_waiting = max_waiting
        self._timeout_s = timeout_s
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="scorer")
        self._jobs: set[Future[Any]] = set()
        self._recent_s = 1.0  # a guess until calls have been timed
        self._backend: Backend | None = None
        self._figures = threading.Lock()
        self._published = PrefixCacheStatus(0, 0, 0, 0, 0)

    def open(self, load: Callable[[], Backend]) -> None:
        """Load the backend on the scoring thread and wait for it.

        Raises:
            StartupError: as `load` raises it.
        """
        self._backend = self._threads.submit(load).result()
        status = self._backend.status()
        self._published = status.prefix_cache
        metrics.publish(status, before=status.prefix_cache)
        if self._backend.slots > 1:
            self._threads.shutdown()
            self._threads = ThreadPoolExecutor(self._backend.slots, thread_name_prefix="scorer")

    @property
    def backend(self) -> Backend:
        """What the jobs run on.

        Raises:
            StartupError: nothing is loaded.
        """
        if self._backend is None:
            raise StartupError("The engines are not loaded.")
        return self._backend

    async def run(self, engine: str, mode: Mode, job: Callable[[Caller], T], arrived_s: float) -> T:
        """Run `job` when its turn comes and return its result.

        Args:
            engine: name of the engine that the job asks.
            mode: what it is asked; both are labels of the metrics.
            job: called once on a scoring thread, with the caller it works for.
            arrived_s: when the request arrived, on the clock of `time.monotonic`.

        Raises:
            Overloaded: `max_waiting` jobs wait already; the job was not queued.
            ScoringTimeout: no result within `timeout_s` of the arrival. A job that waited was
                dropped; a running one is told, and keeps its slot until it has ended.
            ScoringFailed: the job raised anything but a RequestError.
            RequestError: as the job raises it.
            CancelledError: the caller left; the job is treated as on a timeout.
        """
        remaining_s = arrived_s + self._timeout_s - time.monotonic()
        if remaining_s <= 0:
            raise ScoringTimeout("The request was not answered in time.")
        self._admit()
        caller = Caller()
        future = self._threads.submit(
            self._take_turn, (engine, mode), job, caller, time.monotonic()
        )
        self._jobs.add(future)
        try:
            async with asyncio.timeout(remaining_s):
                return await asyncio.wrap_future(future)
        except TimeoutError:
            raise ScoringTimeout("The request was not answered in time.") from None
        finally:
            caller.leave()  # after an answer it tells nobody anything

    def close(self) -> None:
        """Drop what waits, return when the running jobs have ended and the backend is closed."""
        self._threads.shutdown(wait=True, cancel_futures=True)
        if self._backend is not None:
            self._backend.close()

    def _admit(self) -> None:
        self._jobs = {job for job in self._jobs if not job.done()}
        slots = self.backend.slots
        if len(self._jobs) < self._max_waiting + slots:
            return
        wait_s = math.ceil(self._recent_s * len(self._jobs) / slots)
        raise Overloaded(
            "Too many requests are waiting; try again later.",
            retry_after_s=min(max(wait_s, 1), LONGEST_RETRY_AFTER_S),
        )

    def _take_turn(
        self, labels: Labels, job: Callable[[Caller], T], caller: Caller, queued_s: float
    ) -> T:
        metrics.QUEUE_SECONDS.observe(time.monotonic() - queued_s)
        try:
            return self._score(labels, job, caller)
        except OutOfMemory:
            metrics.OUT_OF_MEMORY.inc()
            raise
        except EngineFault as error:
            metrics.ENGINE_FAULTS.labels(error.kind).inc()
            raise
        except RequestError:
            raise
        except Exception as error:  # noqa: BLE001 - the one place that translates
            log.error("Scoring failed: %s", failures.describe(error))
        # Raised out here so that the failed call's frames, and what they hold, are gone.
        raise ScoringFailed("Scoring failed; the server's log says where.")

    def _score(self, labels: Labels, job: Callable[[Caller], T], caller: Caller) -> T:
        started_s = time.monotonic()
        try:
            return job(caller)
        finally:
            took_s = time.monotonic() - started_s
            self._recent_s += RECENT_SHARE * (took_s - self._recent_s)
            metrics.SCORER_SECONDS.labels(*labels).observe(took_s)
            self._publish()

    def _publish(self) -> None:
        with self._figures:
            status = self.backend.status()
            metrics.publish(status, self._published)
            self._published = status.prefix_cache
