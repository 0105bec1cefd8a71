"""Servers with the scripted classifier: beside the scripted scorer, and alone."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from live import Client, Server
from nli_bodies import NLI, NO_LETTERS
from nli_servers import running

LIMITS = {
    "SEMIF_TIMEOUT_S": "3",
    "SEMIF_MAX_WAITING": "2",
    "SEMIF_MAX_BODY_BYTES": "65536",
    "SEMIF_MAX_DECISIONS": "3",
    "SEMIF_MAX_PAIRS": "8",
}


@pytest.fixture(scope="session")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Both engines: 3 s timeout, 2 may wait, 64 KiB bodies, 3 decisions, 8 pairs a request."""
    home = tmp_path_factory.mktemp("both")
    letter, nli = home / "letter.json", home / "nli.json"
    letter.write_text(json.dumps({"of letters": 3.0}))
    nli.write_text(json.dumps({"hot": 2.0, "cold": 0.5}))
    with running(
        home,
        **NLI,
        **LIMITS,
        SEMIF_CALIBRATION=str(letter),
        SEMIF_NLI_CALIBRATION=str(nli),
        SEMIF_MODEL_ALIASES="jev-latest",
    ) as started:
        yield started


@pytest.fixture(scope="session")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The NLI engine without the letter engine."""
    home = tmp_path_factory.mktemp("alone")
    with running(home, **NLI, **NO_LETTERS, SEMIF_MODEL_ALIASES="jev-latest") as started:
        yield started


@pytest.fixture(scope="session")
def letters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The letter engine without the NLI engine."""
    with running(tmp_path_factory.mktemp("letters")) as started:
        yield started


@pytest.fixture
def client(both: Server) -> Iterator[Client]:
    made = Client(both)
    yield made
    made.close()


@pytest.fixture
def untouched(client: Client) -> Iterator[Client]:
    """A client whose requests must all be refused before either engine."""
    before = client.counts()
    yield client
    assert client.counts() == before


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    started: list[Server] = []

    def start(**environ: str) -> Server:
        home = tmp_path / f"home{len(started)}"
        home.mkdir()
        started.append(Server(home, **{**NLI, **environ}))
        return started[-1]

    yield start
    for server in started:
        server.stop()
