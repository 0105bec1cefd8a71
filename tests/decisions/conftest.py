"""One server for all tests of /v1/decisions that only ask."""

from collections.abc import Iterator

import pytest
from decisions_client import DecisionsClient
from live import Server

SERVICE = "tests.servers.scripted:SemIf"


@pytest.fixture(scope="session")
def decisions_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """3 s timeout, 1 may wait, 64 KiB bodies."""
    home = tmp_path_factory.mktemp("decisions")
    started = Server(
        home,
        SERVICE,
        SEMIF_TIMEOUT_S="3",
        SEMIF_MAX_WAITING="1",
        SEMIF_MAX_BODY_BYTES="65536",
        SEMIF_MODEL_ALIASES="gpt-6-luna, org/model@r1",
    )
    yield started.wait_until_ready()
    assert started.stop() == 0


@pytest.fixture
def openai(decisions_server: Server) -> Iterator[DecisionsClient]:
    made = DecisionsClient(decisions_server)
    yield made
    made.close()


@pytest.fixture
def unasked(openai: DecisionsClient) -> Iterator[DecisionsClient]:
    """A client whose requests must all be answered before the scorer."""
    before = openai.counts()
    yield openai
    assert openai.counts() == before
