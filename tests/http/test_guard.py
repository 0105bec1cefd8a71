"""The two layers around small applications: one error shape, limits, quiet logs."""

import asyncio
import logging

import httpx
import pytest
from live import BEARER, TOKEN, error_of
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from semif_bento.api.body import Body
from semif_bento.api.guard import Guard
from semif_bento.serving.failures import WithoutMessages


def ask(app: ASGIApp, path: str = "/metrics", **kw: object) -> httpx.Response:
    async def go() -> httpx.Response:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
            method, headers = kw.pop("method", "GET"), kw.pop("headers", BEARER)
            return await client.request(method, path, headers=headers, **kw)

    return asyncio.run(go())


@pytest.mark.parametrize(
    ("framework", "ours"),
    [
        (404, (404, "not_found")),
        (405, (405, "method_not_allowed")),
        (429, (429, "overloaded")),
        (504, (504, "timeout")),
        (500, (500, "scoring_failed")),
        (503, (500, "scoring_failed")),
        (400, (500, "scoring_failed")),
    ],
)
@pytest.mark.parametrize("kind", [PlainTextResponse, JSONResponse])
def test_the_frameworks_own_errors_go_out_in_our_shape(framework, ours, kind):
    answer = ask(Guard(kind("what the framework says", framework), TOKEN))
    assert error_of(answer) == ours
    assert "framework" not in answer.text
    assert answer.headers["x-request-id"]
    assert int(answer.headers["content-length"]) == len(answer.content)


def test_an_answer_that_is_no_error_passes_as_it_is():
    assert ask(Guard(PlainTextResponse("as it is"), TOKEN)).text == "as it is"


def test_a_route_that_an_operator_closes_asks_for_the_token():
    app = PlainTextResponse("page")
    assert ask(Guard(app, TOKEN), "/docs", headers={}).text == "page"
    closed = Guard(app, TOKEN, closed=("/docs",))
    assert error_of(ask(closed, "/docs", headers={})) == (401, "unauthorized")
    assert ask(closed, "/docs").text == "page"
    assert ask(closed, "/livez", headers={}).text == "page"


def test_a_refused_request_never_reaches_the_application():
    reached = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        reached.append(scope["path"])

    assert error_of(ask(Guard(app, "x" * 40))) == (401, "unauthorized")
    assert error_of(ask(Guard(app, TOKEN), "/nope")) == (404, "not_found")
    assert error_of(ask(Guard(app, TOKEN), "/decide")) == (405, "method_not_allowed")
    assert reached == []


def test_a_websocket_is_turned_away():
    sent = []

    async def send(message: object) -> None:
        sent.append(message)

    scope = {"type": "websocket", "path": "/decide", "headers": []}
    asyncio.run(Guard(PlainTextResponse(""), TOKEN)(scope, None, send))
    assert sent == [{"type": "websocket.close", "code": 1008}]


def test_a_body_at_the_limit_reaches_the_application_and_one_byte_more_does_not():
    reached = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        reached.append((await receive())["body"])
        await PlainTextResponse("")(scope, receive, send)

    guarded = Guard(Body(app, max_body_bytes=2, timeout_s=5), TOKEN)
    post = {"method": "POST"}
    assert ask(guarded, "/health", content=b"{}", **post).status_code == 200
    assert error_of(ask(guarded, "/health", content=b"{ }", **post)) == (413, "request_too_large")
    assert reached == [b"{}"]


def test_a_traceback_in_a_log_keeps_its_frames_and_loses_its_messages():
    words = "the caller's own words"
    try:
        raise KeyError(words)
    except KeyError as error:
        record = logging.LogRecord(
            "x", logging.ERROR, "x", 1, "it failed", (), (KeyError, error, error.__traceback__)
        )
    assert WithoutMessages().filter(record)
    text = logging.Formatter().format(record)
    assert words not in text
    assert "it failed\nKeyError" in text
    assert "in test_a_traceback" in text
