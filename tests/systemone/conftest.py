"""One server for all System One tests that only ask, and a client that knows its routes."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from live import JSON, Client, Server

MODEL = "scripted@r1"
NOUL = {"type": "noul", "instructions": "Is it cold?"}


@pytest.fixture(scope="session")
def systemone_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """3 s timeout, 1 may wait, 64 KiB bodies, 3 decisions a pass, names of the hosted service."""
    home = tmp_path_factory.mktemp("systemone")
    table = home / "calibration.json"
    table.write_text('{"hot": 2.0}')
    started = Server(
        home,
        SEMIF_TIMEOUT_S="3",
        SEMIF_MAX_WAITING="1",
        SEMIF_MAX_BODY_BYTES="65536",
        SEMIF_MAX_DECISIONS="3",
        SEMIF_MODEL_ALIASES="jev-latest, jev-1.13.0",
        SEMIF_CALIBRATION=str(table),
    )
    yield started.wait_until_ready()
    assert started.stop() == 0


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


@pytest.fixture
def jev(systemone_server: Server) -> Iterator[SystemOneClient]:
    made = SystemOneClient(systemone_server)
    yield made
    made.close()


@pytest.fixture
def unasked(jev: SystemOneClient) -> Iterator[SystemOneClient]:
    """A client whose requests must all be answered before the scorer."""
    before = jev.counts()
    yield jev
    assert jev.counts() == before
