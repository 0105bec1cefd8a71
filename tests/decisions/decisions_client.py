"""Requests to /v1/decisions of a test server."""

import json
from typing import Any

import httpx
from decision_bodies import body, user
from live import Client

PATH = "/v1/decisions"


class DecisionsClient(Client):
    """Requests with the token unless told otherwise."""

    def ask(self, headers: Any = None, timeout: float = 30, **changes: Any) -> httpx.Response:
        sent = json.dumps(body(**changes)).encode()
        kept = {"content-type": "application/json", **(headers or {})}
        return self.post(PATH, content=sent, headers=kept, timeout=timeout)


def doing(**what: Any) -> list[Any]:
    """An input that makes the scripted scorer do something."""
    return [user({"type": "input_json", "data": what})]


def error_of(response: httpx.Response) -> tuple[int, str | None, str]:
    """Status, place and code of an error, whose shape is checked on the way."""
    [error] = response.json().values()
    assert list(error) == ["message", "type", "param", "code"]
    assert error["message"].endswith(".")
    assert response.headers["x-request-id"]
    return response.status_code, error["param"], error["code"]
