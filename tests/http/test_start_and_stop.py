"""How a server starts, refuses to start, and stops."""

import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from live import BEARER, ROW, wait_until


@pytest.mark.parametrize(
    ("environ", "line"),
    [
        ({"SEMIF_API_TOKEN": "short"}, "SEMIF_API_TOKEN must hold at least 32 characters."),
        ({"SEMIF_API_TOKEN": ""}, "SEMIF_API_TOKEN or SEMIF_API_TOKEN_FILE is required."),
        ({"SEMIF_TIMEOUT": "5"}, "SEMIF_TIMEOUT is not a setting; did you mean SEMIF_TIMEOUT_S."),
        ({"SEMIF_MAX_TOKENS": "1"}, "SEMIF_MAX_TOKENS must be from 64 to 262144, not 1."),
    ],
)
def test_a_wrong_setting_ends_the_start_with_one_line(launch, environ, line):
    server = launch(**environ)
    assert server.process.wait(30) == 1
    assert server.log() == f"semif-bento cannot start: {line}\n"


def test_a_wrong_calibration_table_ends_the_start_with_one_line(launch, tmp_path):
    table = tmp_path / "table.json"
    table.write_text('{"hot": 0}')
    server = launch(SEMIF_CALIBRATION=str(table))
    assert server.process.wait(30) == 1
    [line] = server.log().splitlines()
    assert line.startswith("semif-bento cannot start: SEMIF_CALIBRATION: the temperature of 'hot'")


def test_a_scorer_that_cannot_load_ends_the_server_with_one_line_and_no_traceback(launch):
    server = launch(SEMIF_REVISION="fail")
    assert server.process.wait(40) == 1
    assert "semif-bento cannot start: The weights are not complete.\n" in server.log()
    assert "Traceback" not in server.log()


def test_a_scorer_that_crashes_while_loading_ends_the_server_and_is_named(launch):
    server = launch(SEMIF_REVISION="crash")
    assert server.process.wait(40) == 1
    assert "RuntimeError: a driver's own words" in server.log()


def test_readyz_is_not_ready_before_the_scorer_is_loaded(launch, tmp_path):
    loaded = tmp_path / "loaded"
    server = launch(SEMIF_REVISION=f"until:{loaded}")
    wait_until(Path(f"{loaded}.waits").exists, limit_s=60)
    assert not server.is_ready()
    loaded.touch()
    server.wait_until_ready()


def test_a_killed_worker_ends_the_server(launch):
    server = launch().wait_until_ready()
    server.worker().kill()
    assert server.process.wait(40) == 1


def test_sigterm_lets_the_running_call_finish_and_exits_0(launch, gate):
    server = launch().wait_until_ready()

    def ask() -> httpx.Response:
        body = {**ROW, "state": gate.state}
        return httpx.post(f"{server.url}/decide", json=body, headers=BEARER, timeout=60)

    with ThreadPoolExecutor() as pool:
        answer = pool.submit(ask)
        gate.wait_for_who_waits()
        server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: not server.is_ready(), limit_s=30)  # it has been told
        gate.open()
        assert answer.result().status_code == 200
    assert server.process.wait(60) == 0
