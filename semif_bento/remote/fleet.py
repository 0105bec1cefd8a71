"""Which of several servers is asked: the one that knows the prefix, and one other when it fails.

Knows nothing of dialects, prompts or of how a server is asked.
"""

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from semif_bento.decisions import ServerStatus
from semif_bento.errors import EngineFault
from semif_bento.remote.dialect import Ask
from semif_bento.remote.server import Proof, Server, ServerFailed
from semif_bento.remote.wire import ConnectionLost

LAST_CHECK_S = 1.0
"""How long the end waits for a running check."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """Something to ask the server of a key, and how its answer is read."""

    key: bytes
    ask: Ask
    read: Callable[[bytes], T]


class Fleet:
    """Servers of one engine that serve the same model. Belongs to one event loop.

    Equal keys go to the same server while it has a place, by rendezvous hashing: when a server
    leaves or returns, only the keys move that are its own.
    """

    def __init__(self, servers: Sequence[Server]) -> None:
        self.servers = tuple(servers)
        self._watches: list[asyncio.Task[None]] = []
        self._ending = asyncio.Event()

    async def ask(self, key: bytes, ask: Ask, read: Callable[[bytes], T]) -> T:
        """Ask the key's server, and once another one when that fails whatever it is asked.

        Raises:
            EngineFault: no server can be asked, both failed, or an answer must not be believed.
            Overloaded: the server's queue is full.
            ScoringTimeout: the server did not answer in time; it may still be at work, so no
                other one is asked.
        """
        ranked = rank(key, self.servers)
        first = _choose(ranked)
        try:
            return await first.call(ask, read)
        except (ConnectionLost, ServerFailed):
            others = [server for server in ranked if server.is_ready and server is not first]
            if not others:
                raise
        return await _choose(others).call(ask, read)

    async def ask_all(self, calls: Sequence[Call[T]]) -> list[T]:
        """Ask several things at once, and return their answers in order.

        Raises:
            The same as `ask`, of the first that fails; the others are given up then.
        """
        tasks = [asyncio.create_task(self.ask(c.key, c.ask, c.read)) for c in calls]
        try:
            return await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()

    def home(self, key: bytes) -> str:
        """Return the name of the server that a key goes to now; safe from any thread.

        Raises:
            EngineFault: no server can be asked.
        """
        return _choose(rank(key, self.servers)).name

    async def watch(self, every_s: float, prove: Proof) -> None:
        """Begin to check every server again and again."""
        self._watches = [
            asyncio.create_task(server.watch(every_s, prove, self._ending))
            for server in self.servers
        ]

    def status(self) -> tuple[ServerStatus, ...]:
        """Report every server; safe from any thread."""
        return tuple(server.status() for server in self.servers)

    async def close(self) -> None:
        """End the checks and close every connection."""
        self._ending.set()
        if self._watches:  # a check that is cancelled while it connects would leave its socket open
            await asyncio.wait(self._watches, timeout=LAST_CHECK_S)
        for watch in self._watches:
            watch.cancel()
        await asyncio.gather(*self._watches, return_exceptions=True)
        for server in self.servers:
            await server.close()


def rank(key: bytes, servers: Sequence[Server]) -> list[Server]:
    """Return the servers in the order in which a key prefers them (rendezvous hashing)."""
    digest = hashlib.sha256(key).digest()
    return sorted(
        servers, key=lambda server: hashlib.sha256(digest + server.name.encode()).digest()
    )


def _choose(ranked: Sequence[Server]) -> Server:
    """Return the first that is ready and has a place; the first that is ready if none has."""
    ready = [server for server in ranked if server.is_ready]
    if not ready:
        raise EngineFault(
            "No engine server can be reached; try again later.", kind="no_server", retry_after_s=1
        )
    return next((server for server in ready if not server.is_full), ready[0])
