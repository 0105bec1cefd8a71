"""A table that was fitted for another model ends a real server's start; the right one serves."""

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from live import Server
from test_fitted_tables import entry, write

PACKAGE = {"SEMIF_MODEL": "package:scripted/model", "SEMIF_REVISION": ""}


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    started: list[Server] = []

    def start(**environ: str) -> Server:
        home = tmp_path / f"home{len(started)}"
        home.mkdir()
        started.append(Server(home, **environ))
        return started[-1]

    yield start
    for server in started:
        server.stop()


def refused(server: Server) -> str:
    assert server.process.wait(180) == 1
    lines = [line for line in server.log().splitlines() if "cannot start" in line]
    assert "Traceback" not in server.log()
    return lines[-1]


def test_another_revision_ends_the_start_before_a_model_is_loaded(launch, tmp_path):
    table = write(tmp_path / "t", w=entry(model_source="scripted", model_revision="r2"))
    never = tmp_path / "never"
    server = launch(SEMIF_REVISION=f"until:{never}", SEMIF_CALIBRATION=str(table))
    line = refused(server)
    assert f"'w' was fitted for scripted at r2, not for scripted at until:{never}." in line
    assert server.log() == f"{line}\n"
    assert not Path(f"{never}.waits").exists()  # nothing began to load


def test_a_model_that_tells_its_revision_only_when_loaded_ends_the_start_then(launch, tmp_path):
    table = write(tmp_path / "t", w=entry(model_source="scripted", model_revision="r2"))
    line = refused(launch(**PACKAGE, SEMIF_CALIBRATION=str(table)))
    assert line.endswith("'w' was fitted for scripted at r2, not for scripted at r1.")


def test_another_prompt_version_ends_the_start(launch, tmp_path):
    changes = {"model_source": "scripted", "model_revision": "r1", "prompt_version": "v0"}
    table = write(tmp_path / "t", w=entry(**changes))
    assert "'w' was fitted for prompt_version 'v0'" in refused(launch(SEMIF_CALIBRATION=str(table)))


def test_health_tells_the_provenance_of_a_fitted_workload_and_the_answer_uses_it(launch, tmp_path):
    fitted = entry(2.5, model_source="scripted", model_revision="r1")
    table = write(tmp_path / "t", fitted=fitted, plain=2)
    server = launch(SEMIF_CALIBRATION=str(table)).wait_until_ready(180)
    health = httpx.get(f"{server.url}/health").json()
    assert health["workloads"] == ["fitted", "plain"]
    assert health["calibration"] == {"fitted": fitted, "plain": {"temperature": 2.0}}
