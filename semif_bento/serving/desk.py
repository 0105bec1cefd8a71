"""The desk before the one scoring slot: who may wait, for how long, and whose turn it is.

Knows nothing of HTTP or torch. It guards one process: two processes on one card are two desks.
"""

import asyncio
import logging
import math
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Literal, TypeVar

from semif_bento.decisions import ModelIdentity, Scorer, ScorerStatus
from semif_bento.errors import (
    OutOfMemory,
    Overloaded,
    RequestError,
    ScoringFailed,
    ScoringTimeout,
    StartupError,
)
from semif_bento.serving import failures, metrics

Mode = Literal["direct", "shared"]
T = TypeVar("T")

RECENT_SHARE = 0.25  # weight of the newest call in the mean behind Retry-After
LONGEST_RETRY_AFTER_S = 10

log = logging.getLogger(__name__)


class Desk:
    """Runs jobs on one scorer, one at a time, on the thread that loaded it.

    The slot is free only when the running job has ended, not when its caller has left or timed
    out; a job that still waits is dropped as soon as its caller is cancelled.

    Args:
        max_waiting: how many jobs may wait behind the running one (0 or more).
        timeout_s: longest time from a request's arrival to its answer (over 0).
    """

    def __init__(self, max_waiting: int, timeout_s: float) -> None:
        self._max_waiting = max_waiting
        self._timeout_s = timeout_s
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="scorer")
        self._jobs: set[Future[Any]] = set()
        self._recent_s = 1.0  # a guess until calls have been timed
        self._scorer: Scorer | None = None

    def open(self, load: Callable[[], Scorer]) -> None:
        """Load the scorer on the scoring thread and wait for it.

        Raises:
            StartupError: as `load` raises it.
        """
        self._scorer = self._thread.submit(load).result()
        status = self._scorer.status()
        metrics.publish(status, before=status.prefix_cache)

    @property
    def identity(self) -> ModelIdentity:
        """What the loaded scorer is."""
        return self._loaded().identity

    @property
    def wide_slot_count(self) -> int:
        """Most options of a decision."""
        return self._loaded().wide_slot_count

    def status(self) -> ScorerStatus:
        """Report the scorer's figures without waiting for the running job."""
        return self._loaded().status()

    async def run(self, mode: Mode, job: Callable[[Scorer], T], arrived_s: float) -> T:
        """Run `job` when its turn comes and return its result.

        Args:
            mode: label of the scorer's metrics.
            job: called once with the scorer, on the scoring thread.
            arrived_s: when the request arrived, on the clock of `time.monotonic`.

        Raises:
            Overloaded: `max_waiting` jobs wait already; the job was not queued.
            ScoringTimeout: no result within `timeout_s` of the arrival. A job that waited was
                dropped; a running one keeps the slot until it has ended.
            ScoringFailed: the job raised anything but a RequestError.
            RequestError: as the job raises it.
            CancelledError: the caller left; the job is treated as on a timeout.
        """
        remaining_s = arrived_s + self._timeout_s - time.monotonic()
        if remaining_s <= 0:
            raise ScoringTimeout("The request was not answered in time.")
        self._admit()
        future = self._thread.submit(self._take_turn, mode, job, time.monotonic())
        self._jobs.add(future)
        try:
            async with asyncio.timeout(remaining_s):
                return await asyncio.wrap_future(future)
        except TimeoutError:
            raise ScoringTimeout("The request was not answered in time.") from None

    def close(self) -> None:
        """Drop what waits and return when the running job has ended."""
        self._thread.shutdown(wait=True, cancel_futures=True)

    def _admit(self) -> None:
        self._jobs = {job for job in self._jobs if not job.done()}
        if len(self._jobs) <= self._max_waiting:
            return
        wait_s = math.ceil(self._recent_s * len(self._jobs))
        raise Overloaded(
            "Too many requests are waiting; try again later.",
            retry_after_s=min(max(wait_s, 1), LONGEST_RETRY_AFTER_S),
        )

    def _take_turn(self, mode: Mode, job: Callable[[Scorer], T], queued_s: float) -> T:
        metrics.QUEUE_SECONDS.observe(time.monotonic() - queued_s)
        try:
            return self._score(mode, job)
        except OutOfMemory:
            metrics.OUT_OF_MEMORY.inc()
            raise
        except RequestError:
            raise
        except Exception as error:  # noqa: BLE001 - the one place that translates
            log.error("Scoring failed: %s", failures.describe(error))
        # Raised out here so that the failed call's frames, and what they hold, are gone.
        raise ScoringFailed("Scoring failed; the server's log says where.")

    def _score(self, mode: Mode, job: Callable[[Scorer], T]) -> T:
        scorer = self._loaded()
        cache_before = scorer.status().prefix_cache
        started_s = time.monotonic()
        try:
            return job(scorer)
        finally:
            took_s = time.monotonic() - started_s
            self._recent_s += RECENT_SHARE * (took_s - self._recent_s)
            metrics.SCORER_SECONDS.labels(mode).observe(took_s)
            metrics.publish(scorer.status(), cache_before)

    def _loaded(self) -> Scorer:
        if self._scorer is None:
            raise StartupError("The scorer is not loaded.")
        return self._scorer
