"""A server from the project's own environment, for clients that run in another one.

Where the clients are not installed their tests are not collected, so asking for them finds none,
which pytest calls an error.
"""

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from live import ROOT, TOKEN, Server

if not (find_spec("openai") and find_spec("jevcompat")):
    collect_ignore_glob = ["test_*.py"]

PYTHON = Path(os.environ.get("SERVER_PYTHON", ROOT / ".venv" / "bin" / "python"))
SERVICE = "tests.servers.scripted:SemIf"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker("clients")


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """3 s timeout, 1 may wait, names of the hosted services."""
    started = Server(
        tmp_path_factory.mktemp("clients"),
        SERVICE,
        PYTHON,
        SEMIF_TIMEOUT_S="3",
        SEMIF_MAX_WAITING="1",
        SEMIF_MODEL_ALIASES="gpt-6-luna, org/model@r1, jev-latest",
    )
    yield started.wait_until_ready()
    assert started.stop() == 0


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    """The token; and no variable of the one who runs the tests reaches a client."""
    for name in list(os.environ):
        if name.startswith(("OPENAI_", "LANGSMITH_", "LANGCHAIN_", "TYPESAFE_")):
            monkeypatch.delenv(name)
    return TOKEN
