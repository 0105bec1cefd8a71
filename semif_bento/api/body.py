"""The inner layer: reads a request's body within its limits, checks it, and watches the client.

Knows nothing of authorisation or scoring. It stands inside BentoML's own layers, so that what it
answers is traced and counted there too.
"""

import asyncio
import contextlib
import time

from opentelemetry import trace
from pydantic import BaseModel
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from semif_bento.api import encodings, exchange, strict_json
from semif_bento.api.encodings import IDENTITY
from semif_bento.api.exchange import Exchange
from semif_bento.api.refusal import refuse
from semif_bento.api.routes import ROUTES
from semif_bento.errors import ClientClosed, RequestError, RequestTooLarge, ScoringTimeout

MAX_DRAINED_BYTES = 16 << 20
MAX_DRAIN_S = 1.0
MAX_INLINE_BYTES = (
    32 << 10
)  # a larger body, or one that may become so, is parsed off the event loop


class Body:
    """ASGI layer that turns bytes into `exchange.body` or an error.

    Args:
        app: what answers a request whose body is right.
        max_body_bytes: longest body, by Content-Length, as counted, and when decoded.
        timeout_s: longest time from arrival until the body is here.
    """

    def __init__(self, app: ASGIApp, max_body_bytes: int, timeout_s: float) -> None:
        self._app = app
        self._max_body_bytes = max_body_bytes
        self._timeout_s = timeout_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read and check the body, then answer, unless the client leaves first."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        record = exchange.current()
        record.trace_id = format(trace.get_current_span().get_span_context().trace_id, "032x")
        try:
            body = await self._read_in_time(record, scope, receive)
            await self._check(record, body)
        except RequestTooLarge as error:
            await _drain(record, receive)
            await refuse(error)(scope, receive, send)
        except RequestError as error:
            await refuse(error)(scope, receive, send)
        else:
            await self._answer_while_connected(record, body, scope, receive, send)

    async def _read_in_time(self, record: Exchange, scope: Scope, receive: Receive) -> bytes:
        declared = Headers(scope=scope).get("content-length", "0")
        if declared.isdecimal() and int(declared) > self._max_body_bytes:
            raise RequestTooLarge(f"The body is over {self._max_body_bytes} bytes.")
        remaining_s = record.arrived_s + self._timeout_s - time.monotonic()
        try:
            async with asyncio.timeout(remaining_s):
                return await self._read(record, receive)
        except TimeoutError:
            raise ScoringTimeout("The body did not arrive in time.") from None

    async def _read(self, record: Exchange, receive: Receive) -> bytes:
        chunks: list[bytes] = []
        has_more = True
        while has_more:
            chunk, has_more = await _receive_chunk(record, receive)
            if record.bytes_in > self._max_body_bytes:
                raise RequestTooLarge(f"The body is over {self._max_body_bytes} bytes.")
            chunks.append(chunk)
        return b"".join(chunks)

    async def _check(self, record: Exchange, body: bytes) -> None:
        model = ROUTES[record.route].body
        if model is None or record.method != "POST":
            return
        if not body and not model.model_fields:
            body = b"{}"
        if record.encoding == IDENTITY and len(body) <= MAX_INLINE_BYTES:
            record.body = self._parse(record, model, body)
        else:
            record.body = await asyncio.to_thread(self._parse, record, model, body)

    def _parse(self, record: Exchange, model: type[BaseModel], body: bytes) -> BaseModel:
        text = encodings.decode(body, record.encoding, self._max_body_bytes)
        return ROUTES[record.route].check(model, strict_json.parse(text))

    async def _answer_while_connected(
        self, record: Exchange, body: bytes, scope: Scope, receive: Receive, send: Send
    ) -> None:
        answer = asyncio.ensure_future(self._app(scope, _replay(body), send))
        departure = asyncio.create_task(_wait_for_departure(receive))
        try:
            await asyncio.wait({answer, departure}, return_when=asyncio.FIRST_COMPLETED)
            if not answer.done() and not record.status:
                answer.cancel()
                await asyncio.wait({answer})
                # Nobody reads this; it is there to be logged and counted.
                await refuse(ClientClosed("The client left."))(scope, receive, send)
            else:
                await answer
        finally:
            answer.cancel()
            departure.cancel()


async def _receive_chunk(record: Exchange, receive: Receive) -> tuple[bytes, bool]:
    """Return the next part of the body, and whether there is more."""
    message = await receive()
    if message["type"] == "http.disconnect":
        raise ClientClosed("The client left.")
    chunk = message.get("body", b"")
    record.bytes_in += len(chunk)
    return chunk, message.get("more_body", False)


async def _drain(record: Exchange, receive: Receive) -> None:
    """Read on for a while: a client that still writes would miss the answer."""
    has_more = True
    with contextlib.suppress(TimeoutError, ClientClosed):
        async with asyncio.timeout(MAX_DRAIN_S):
            while has_more and record.bytes_in < MAX_DRAINED_BYTES:
                _, has_more = await _receive_chunk(record, receive)


def _replay(body: bytes) -> Receive:
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        if messages:
            return messages.pop()
        return await asyncio.Future()  # only the watch learns that the client has left

    return receive


async def _wait_for_departure(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
