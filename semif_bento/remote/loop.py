"""An event loop on a thread of its own, for callers that wait on theirs; knows no engine."""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError
from typing import Any, TypeVar

from semif_bento.caller import Caller
from semif_bento.errors import ClientClosed

T = TypeVar("T")


class BackgroundLoop:
    """Runs coroutines for threads that block until theirs has ended. Any thread may ask."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="engine-calls", daemon=True
        )
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T], caller: Caller) -> T:
        """Run a coroutine and return its result; cancel it when the caller leaves.

        Raises:
            ClientClosed: the caller left.
            Exception: as the coroutine raises it.
        """
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        caller.on_leaving(future.cancel)
        try:
            return future.result()
        except CancelledError:
            raise ClientClosed("The caller left before the answer.") from None

    def close(self) -> None:
        """Cancel what runs, wait until it has ended, and end the thread."""
        asyncio.run_coroutine_threadsafe(_cancel_others(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
