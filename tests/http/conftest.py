"""Servers for the tests: one for all that only ask, and fresh ones for those that start or stop."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from live import Client, Server


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    started: list[Server] = []

    def start(**environ: str) -> Server:
        home = tmp_path / str(len(started))
        home.mkdir()
        started.append(Server(home, **environ))
        return started[-1]

    yield start
    for server in started:
        server.stop()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all tests that only ask: 3 s timeout, 2 may wait, 64 KiB bodies."""
    home = tmp_path_factory.mktemp("server")
    table = home / "calibration.json"
    table.write_text('{"cold": 0.5, "hot": 2.0}')
    started = Server(
        home,
        SEMIF_TIMEOUT_S="3",
        SEMIF_MAX_WAITING="2",
        SEMIF_MAX_BODY_BYTES="65536",
        SEMIF_MAX_DECISIONS="3",
        SEMIF_CALIBRATION=str(table),
    )
    yield started.wait_until_ready()
    assert started.stop() == 0


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    made = Client(server)
    yield made
    made.close()


@pytest.fixture
def untouched(client: Client) -> Iterator[Client]:
    """A client whose requests must all be refused before the scorer."""
    before = client.counts()
    yield client
    assert client.counts() == before
