"""Bounded HTTP connections to one server; knows nothing of what is asked or whom it is for."""

import asyncio
import ssl
from dataclasses import dataclass

import httpx2

from semif_bento.errors import EngineFault, ScoringTimeout
from semif_bento.remote.dialect import Ask

CONNECT_TIMEOUT_S = 3.0
# Both engines close a connection that idles for 5 s; one that is reused then is lost.
IDLE_S = 2.0
MOST_ANSWER_BYTES = 32 << 20


class ConnectionLost(EngineFault):
    """The server cannot be reached, or went away before it had answered."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer; `retry_after` as the header has it, empty without one."""

    status: int
    body: bytes
    retry_after: str


class Wire:
    """Connections to one server. Belongs to one event loop; close it there.

    Args:
        base_url: http or https, without a slash at its end.
        key: bearer token, empty for none.
        most_connections: at once.
    """

    def __init__(self, base_url: str, key: str, most_connections: int) -> None:
        self._base_url = base_url
        headers = {"Accept-Encoding": "identity", "Content-Type": "application/json"}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        self._client = httpx2.AsyncClient(
            headers=headers,
            limits=httpx2.Limits(
                max_connections=most_connections,
                max_keepalive_connections=most_connections,
                keepalive_expiry=IDLE_S,
            ),
            timeout=httpx2.Timeout(None, connect=CONNECT_TIMEOUT_S),
            trust_env=False,  # a proxy of the environment is not meant for the servers next door
            verify=ssl.create_default_context() if base_url.startswith("https") else False,
        )

    async def send(self, ask: Ask, timeout_s: float) -> Reply:
        """Send a request and return its whole answer.

        Raises:
            ConnectionLost: no connection, or it ended before the answer did.
            ScoringTimeout: no whole answer within `timeout_s`; the connection is closed, which
                tells the engine to stop.
            EngineFault: the answer is longer than any answer can be.
            CancelledError: the caller has left; the connection is closed as well.
        """
        try:
            async with asyncio.timeout(timeout_s):
                return await self._exchange(ask)
        except TimeoutError:
            raise ScoringTimeout("The engine did not answer in time.") from None
        except (httpx2.TransportError, OSError) as error:
            raise ConnectionLost(
                "An engine server cannot be reached.", kind=_kind(error), retry_after_s=1
            ) from None

    async def _exchange(self, ask: Ask) -> Reply:
        method = "GET" if ask.body is None else "POST"
        body = bytearray()
        url = self._base_url + ask.path
        async with self._client.stream(method, url, content=ask.body) as response:
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > MOST_ANSWER_BYTES:
                    raise EngineFault("An engine server's answer has no end.", kind="too_long")
        return Reply(response.status_code, bytes(body), response.headers.get("retry-after", ""))

    async def close(self) -> None:
        """Close every connection."""
        await self._client.aclose()


def _kind(error: Exception) -> str:
    is_refused = isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)
    return "unreachable" if is_refused else "connection_lost"
