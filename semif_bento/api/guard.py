"""The outermost layer: who may ask, which routes exist, what media is taken, one error shape.

Knows nothing of bodies, scoring or BentoML. It does not limit how often a client may try a token.
"""

import hmac
from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from semif_bento.api import access, exchange
from semif_bento.api.encodings import IDENTITY
from semif_bento.api.exchange import UNKNOWN_ROUTE, Exchange
from semif_bento.api.refusal import refuse, refuse_foreign
from semif_bento.api.routes import ROUTES, family_of, find
from semif_bento.api.systemone.schema import NO_IMAGES
from semif_bento.errors import (
    MethodNotAllowed,
    NotFound,
    RequestError,
    TokenMissing,
    Unauthorized,
    UnsupportedMedia,
    UsageError,
)

_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class Guard:
    """ASGI layer around the whole application.

    Args:
        app: what answers requests that may pass.
        token: the bearer token; compared as bytes in constant time.
        closed: open routes that ask for the token all the same.
    """

    def __init__(self, app: ASGIApp, token: str, closed: Collection[str] = ()) -> None:
        self._app = app
        self._token = token.encode()
        self._closed = frozenset(closed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or pass the server's start and stop through."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await self._answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        record = _begin(scope, headers)
        reply = _Reply(record, scope, receive, send)
        try:
            refusal = self._refusal(record, scope, headers)
            answer = self._app if refusal is None else refuse(refusal)
            # The framework sees a route of the table, never a path that somebody made up.
            known = {"path": record.route, "raw_path": record.route.encode()}
            inner = scope if record.route == UNKNOWN_ROUTE else {**scope, **known}
            await answer(inner, receive, reply.send)
        finally:
            access.record(record)

    def _refusal(self, record: Exchange, scope: Scope, headers: Headers) -> RequestError | None:
        route = ROUTES.get(record.route)
        is_open = route is not None and route.is_open and record.route not in self._closed
        if not is_open and not self._knows_token(headers):
            kind = Unauthorized if "authorization" in headers else TokenMissing
            return kind("The bearer token is missing or wrong.")
        if route is None:
            return NotFound("There is no such route.")
        if scope["method"] not in route.methods:
            return MethodNotAllowed("The route does not take this method.")
        if scope["method"] != "POST":
            return None
        record.encoding = _encoding(headers)
        if record.family == "systemone" and _essences(headers) == ["multipart/form-data"]:
            return UsageError(NO_IMAGES)
        if not _is_json(headers) or record.encoding not in route.encodings:
            encodings = " or ".join(route.encodings)
            return UnsupportedMedia(f"The body must be JSON in UTF-8, encoded as {encodings}.")
        return None

    def _knows_token(self, headers: Headers) -> bool:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        # Headers are Latin-1 text; back to bytes, since compare_digest refuses non-ASCII text.
        is_equal = hmac.compare_digest(given.strip().encode("latin-1"), self._token)
        return is_equal and scheme.lower() == "bearer"


class _Reply:
    """Sends an answer with its request id, counted, in our shape where the framework made it."""

    def __init__(self, record: Exchange, scope: Scope, receive: Receive, send: Send) -> None:
        self._record = record
        self._scope, self._receive, self._send = scope, receive, send
        self._is_replaced = False

    async def send(self, message: Message) -> None:
        if self._is_replaced:
            return
        is_start = message["type"] == "http.response.start"
        if is_start and message["status"] >= 400 and not self._record.code:
            response = refuse_foreign(message["status"])
            await response(self._scope, self._receive, self.send)
            self._is_replaced = True
            return
        if is_start:
            self._record.status = message["status"]
            request_id = self._record.request_id.encode()
            names = [(b"x-request-id", request_id)]
            if self._record.family == "systemone":
                names.append((b"x-typesafe-request-id", b"req_" + request_id))
            message = {**message, "headers": [*message["headers"], *names]}
        else:
            self._record.bytes_out += len(message.get("body", b""))
        await self._send(message)


def _begin(scope: Scope, headers: Headers) -> Exchange:
    route, name = find(scope["path"]) or (UNKNOWN_ROUTE, "")
    record = Exchange(
        method=scope["method"] if scope["method"] in _METHODS else "-",
        route=route,
        family=family_of(scope["path"]),
        name=name,
    )
    given = access.accept_request_id(headers.get("x-request-id", "").encode("latin-1"))
    record.request_id = given or record.request_id
    exchange.begin(record)
    return record


def _is_json(headers: Headers) -> bool:
    """Tell whether the body is JSON in UTF-8; a missing Content-Type counts as JSON."""
    media = headers.getlist("content-type") or ["application/json"]
    parameters = [part.strip().lower() for part in media[0].split(";")[1:]]
    charsets = [p.partition("=")[2].strip('"') for p in parameters if p.startswith("charset=")]
    return _essences(headers) in ([], ["application/json"]) and all(
        charset in ("utf-8", "utf8") for charset in charsets
    )


def _essences(headers: Headers) -> list[str]:
    return [media.partition(";")[0].strip().lower() for media in headers.getlist("content-type")]


def _encoding(headers: Headers) -> str:
    """Return the content encoding as one name; a list of them is a name that nobody knows."""
    given = ",".join(headers.getlist("content-encoding")).split(",")
    names = [name.strip().lower() for name in given]
    return ",".join(name for name in names if name not in ("", IDENTITY)) or IDENTITY
