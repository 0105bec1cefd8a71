import json
import re
import shlex
import signal
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import COMMAND, LOCAL_ENV, environment, run
from ports import free_port

from semif_bento.cli.environment import Environment, read_environment
from semif_bento.cli.sample import DECISION
from semif_bento.cli.serve import curl_line
from semif_bento.cli.server import reachable

TOKEN = "a-token-of-the-operator-with-40-letters-"


@pytest.fixture
def serving(tmp_path: Path) -> "Iterator[subprocess.Popen[str]]":
    process = subprocess.Popen(
        [*COMMAND, "serve", "--env-file", str(LOCAL_ENV)],
        env=environment(tmp_path, PORT=str(free_port())),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


def read_until_ready(process: "subprocess.Popen[str]") -> str:
    assert process.stdout
    text = ""
    for line in process.stdout:
        text += line
        if line.startswith("curl "):
            return text
    raise AssertionError(text)


def test_the_printed_line_works_and_ctrl_c_ends_cleanly(
    serving: "subprocess.Popen[str]",
) -> None:
    text = read_until_ready(serving)
    words = shlex.split(text.splitlines()[-1])
    headers = dict(h.split(": ", 1) for h in words if h.startswith(("Auth", "Content")))
    token = headers["Authorization"].removeprefix("Bearer ")

    request = urllib.request.Request(words[2], words[-1].encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        result = json.load(answer)
    serving.send_signal(signal.SIGINT)
    rest, _ = serving.communicate(timeout=60)

    assert result["option_ids"] == [option["id"] for option in DECISION["options"]]
    assert serving.returncode == 0
    assert (text + rest).count(token) == 1
    assert "Traceback" not in text + rest


def test_a_wrong_setting_ends_with_one_line_and_starts_nothing(tmp_path: Path) -> None:
    done = run(tmp_path, "serve", "--env-file", str(LOCAL_ENV), SEMIF_MAX_TOKENS="many")

    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == (
        "semif-bento serve: SEMIF_MAX_TOKENS must be a whole number from 64 to 262144.\n"
    )


def test_a_taken_port_is_told_before_a_model_is_loaded(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        done = run(tmp_path, "serve", "--env-file", str(LOCAL_ENV), "--port", str(port))

    assert done.returncode == 1
    assert f"127.0.0.1:{port} cannot be bound" in done.stderr


def test_a_model_that_cannot_start_ends_with_the_servers_exit_code(tmp_path: Path) -> None:
    missing = {"SEMIF_MODEL": str(tmp_path / "none.gguf"), "SEMIF_REVISION": "none"}

    done = run(tmp_path, "serve", "--env-file", str(LOCAL_ENV), PORT=str(free_port()), **missing)

    assert done.returncode == 1
    assert "semif-bento cannot start: " in done.stderr
    assert "Ready at" not in done.stdout


@pytest.mark.parametrize("port", ["0", "65536", "http"])
def test_a_port_that_is_none_is_wrong_usage(tmp_path: Path, port: str) -> None:
    assert run(tmp_path, "serve", PORT=port).returncode == 2


def token_as_a_shell_sees_it(found: Environment, **more: str) -> str:
    line = curl_line("http://127.0.0.1:1", found)
    word = re.search(r'-H ("Authorization: Bearer [^"]*")', line)
    assert word
    shell = subprocess.run(
        ["sh", "-c", f"printf %s {word[1]}"], env=more, capture_output=True, text=True, check=True
    )
    return shell.stdout.removeprefix("Authorization: Bearer ")


def test_the_line_names_a_token_of_the_environment_and_does_not_hold_it() -> None:
    found = read_environment({"SEMIF_API_TOKEN": TOKEN}, [])

    assert TOKEN not in curl_line("http://127.0.0.1:1", found)
    assert token_as_a_shell_sees_it(found, SEMIF_API_TOKEN=TOKEN) == TOKEN


@pytest.mark.parametrize("name", ["a.env", "with a space.env"])
def test_the_line_reads_a_token_from_the_env_file_that_has_it(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(f"SEMIF_API_TOKEN={TOKEN}\n")
    found = read_environment({}, [tmp_path / name])

    assert TOKEN not in curl_line("http://127.0.0.1:1", found)
    assert token_as_a_shell_sees_it(found) == TOKEN


def test_the_line_reads_a_token_file(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    found = read_environment({"SEMIF_API_TOKEN_FILE": str(tmp_path / "token")}, [])

    assert token_as_a_shell_sees_it(found) == TOKEN


@pytest.mark.parametrize(
    ("host", "address"), [("0.0.0.0", "127.0.0.1"), ("::", "[::1]"), ("10.1.2.3", "10.1.2.3")]
)
def test_a_wildcard_address_is_called_on_loopback(host: str, address: str) -> None:
    assert reachable(host) == address
