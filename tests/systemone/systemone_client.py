"""Requests to System One's routes of a test server."""

import json
from typing import Any

import httpx
from live import JSON, Client

MODEL = "scripted@r1"
NOUL = {"type": "noul", "instructions": "Is it cold?"}


class SystemOneClient(Client):
    """Requests to System One's routes, with the token unless told otherwise."""

    def ask(self, questions: Any = None, headers: Any = None, **changes: Any) -> httpx.Response:
        body = {"model": MODEL, "state": "The tea was cold.", "questions": questions or {"q": NOUL}}
        return self.send_json({**body, **changes}, **(headers or {}))

    def send_json(self, body: Any, **headers: str) -> httpx.Response:
        return self.send(json.dumps(body).encode(), path="/v1/systemone", **headers)

    def answers(self, questions: Any, **changes: Any) -> dict[str, Any]:
        response = self.ask(questions, **changes)
        assert response.status_code == 200, response.text
        return response.json()["answers"]

    def post_bytes(self, body: bytes, **headers: str) -> httpx.Response:
        return self.post("/v1/systemone", content=body, headers={**JSON, **headers})
