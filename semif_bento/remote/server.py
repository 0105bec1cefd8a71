"""One server of an engine: its places, whether it is asked, and what its statuses mean.

Knows nothing of other servers, of dialects or of prompts.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar
from urllib.parse import urlsplit

from semif_bento.decisions import ServerStatus
from semif_bento.errors import (
    EngineFault,
    Overloaded,
    RequestError,
    ScoringTimeout,
    StartupError,
)
from semif_bento.remote.dialect import Ask
from semif_bento.remote.wire import ConnectionLost, Reply, Wire

HEALTH = Ask("/health")
HEALTH_TIMEOUT_S = 5.0
HEALTH_FAILURES = 2
"""Silent health checks in a row that take a server out; a refused connection does at once."""

LONGEST_RETRY_AFTER_S = 10

log = logging.getLogger(__name__)

T = TypeVar("T")
Proof = Callable[["Server"], Awaitable[None]]
"""Raises StartupError where a server must not be asked."""


class ServerFailed(EngineFault):
    """The server failed, whatever it was asked: another one may be asked the same."""


class Server:
    """One server, its connections, and a limit to the calls it answers at once.

    Belongs to one event loop; `status`, `name` and `is_ready` may be read from any thread. It is
    asked from the start. A lost connection or failed health checks eject it, and it comes back when
    it is healthy and passes the proof again: who restarts may have become another. An answer that
    no server may give brings the proof as well, and is ejection only if that fails.

    Args:
        base_url: http or https, without credentials.
        key: bearer token, empty for none.
        concurrency: most calls at once.
        timeout_s: longest time of one call.
    """

    def __init__(self, base_url: str, key: str, concurrency: int, timeout_s: float) -> None:
        parts = urlsplit(base_url)
        self.name = parts.netloc + parts.path
        self.is_ready = True
        self._wire = Wire(base_url, key, concurrency + 1)  # one for the checks
        self._places = asyncio.Semaphore(concurrency)
        self._concurrency, self._timeout_s = concurrency, timeout_s
        self._is_doubted = False
        self._silences = 0
        self._running = self._calls = self._faults = self._ejections = 0

    @property
    def is_full(self) -> bool:
        """Whether a call would have to wait for a place."""
        return self._places.locked()

    async def call(self, ask: Ask, read: Callable[[bytes], T]) -> T:
        """Wait for a place, ask, and return what `read` makes of a good answer.

        Raises:
            ConnectionLost, ServerFailed: another server may be asked.
            Overloaded: its queue is full.
            EngineFault: it refused what it must take, or `read` refused its answer.
            ScoringTimeout: it did not answer in time.
        """
        async with self._places:
            self._running += 1
            try:
                return read(await self.fetch(ask, self._timeout_s))
            except EngineFault as fault:
                self._faults += 1
                self._blame(fault)
                raise
            finally:
                self._running -= 1
                self._calls += 1

    async def fetch(self, ask: Ask, timeout_s: float) -> bytes:
        """Ask outside the places, ready or not; nothing is counted.

        Raises:
            The same as `call`, which also reads.
        """
        reply = await self._wire.send(ask, timeout_s)
        if reply.status == 200:
            return reply.body
        raise _failure(reply)

    async def watch(self, every_s: float, prove: Proof, ending: asyncio.Event) -> None:
        """Check the server again and again, until `ending` is set."""
        while not ending.is_set():
            try:
                async with asyncio.timeout(every_s):
                    await ending.wait()
            except TimeoutError:
                await self._check(prove)

    def status(self) -> ServerStatus:
        """Report what it was asked so far."""
        return ServerStatus(
            name=self.name,
            is_ready=self.is_ready,
            running=self._running,
            calls=self._calls,
            faults=self._faults,
            ejections=self._ejections,
        )

    async def close(self) -> None:
        """Close every connection."""
        await self._wire.close()

    async def _check(self, prove: Proof) -> None:
        try:
            await self.fetch(HEALTH, HEALTH_TIMEOUT_S)
            self._silences = 0
        except RequestError as error:
            self._silences += 1
            is_silent = isinstance(error, ScoringTimeout)
            if not is_silent or self._silences >= HEALTH_FAILURES:
                self._eject(error.message)
            return
        if not self.is_ready or self._is_doubted:
            await self._prove_again(prove)

    async def _prove_again(self, prove: Proof) -> None:
        # One that is only doubted stays while it is too busy to be judged.
        judged = (StartupError,) if self.is_ready else (StartupError, RequestError)
        with suppress(RequestError):
            try:
                await prove(self)
            except judged as error:
                self._eject(str(error))
                return
            self._is_doubted = False
            if not self.is_ready:
                log.warning("engine server %s is asked again", self.name)
            self.is_ready = True

    def _blame(self, fault: EngineFault) -> None:
        if isinstance(fault, ConnectionLost):
            self._eject(fault.message)
        else:
            self._is_doubted = True  # the next check proves it anew

    def _eject(self, reason: str) -> None:
        if self.is_ready:
            self.is_ready = False
            self._ejections += 1
            log.warning("engine server %s is not asked any more: %s", self.name, reason)


def _failure(reply: Reply) -> RequestError:
    if reply.status in (429, 503):
        wait_s = int(reply.retry_after) if reply.retry_after.isdecimal() else 1
        return Overloaded(
            "Too many requests are waiting at the engine; try again later.",
            retry_after_s=min(max(wait_s, 1), LONGEST_RETRY_AFTER_S),
        )
    if reply.status >= 500:
        return ServerFailed(f"An engine server failed ({reply.status}).", kind="failed")
    return EngineFault(f"An engine server refused a request ({reply.status}).", kind="refused")
