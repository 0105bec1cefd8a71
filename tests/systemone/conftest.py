"""One server for all System One tests that only ask."""

from collections.abc import Iterator

import pytest
from live import Server
from systemone_client import SystemOneClient


@pytest.fixture(scope="session")
def systemone_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """3 s timeout, 1 may wait, 64 KiB bodies, 8 decisions a pass, names of the hosted service."""
    home = tmp_path_factory.mktemp("systemone")
    table = home / "calibration.json"
    table.write_text('{"hot": 2.0}')
    started = Server(
        home,
        SEMIF_TIMEOUT_S="3",
        SEMIF_MAX_WAITING="1",
        SEMIF_MAX_BODY_BYTES="65536",
        SEMIF_MAX_DECISIONS="8",
        SEMIF_MODEL_ALIASES="jev-latest, jev-1.13.0",
        SEMIF_CALIBRATION=str(table),
    )
    yield started.wait_until_ready()
    assert started.stop() == 0


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
