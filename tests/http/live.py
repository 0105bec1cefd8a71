"""Real server processes on loopback, each with a BENTOML_HOME of its own."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import psutil
from ports import free_port

ROOT = Path(__file__).parents[2]
TOKEN = "t" * 40
BEARER = {"Authorization": f"Bearer {TOKEN}"}
JSON = {"Content-Type": "application/json"}
DECISION = {
    "id": "d",
    "question": "Which?",
    "options": [{"id": "y", "description": "Yes"}, {"id": "n", "description": "No"}],
}
ROW = {**DECISION, "state": "some state"}
SHARED = {"state": "some state", "decisions": [DECISION, {**DECISION, "id": "e"}]}


class Server:
    """One `bentoml serve`, of the scripted scorer unless told otherwise; ready when asked."""

    def __init__(
        self,
        home: Path,
        service: str = "tests.servers.scripted:SemIf",
        python: Path = Path(sys.executable),
        **environ: str,
    ) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log_path = home / "server.log"
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("SEMIF_", "BENTOML_"))}
        given = {
            "SEMIF_API_TOKEN": TOKEN,
            "SEMIF_MODEL": "scripted",
            "SEMIF_REVISION": "r1",
            "SEMIF_DEVICE": "cpu",
            "BENTOML_HOME": str(home),
            "BENTOML_DO_NOT_TRACK": "True",
            "OMP_NUM_THREADS": "1",
            **environ,
        }
        command = [python.parent / "bentoml", "serve", service, "--host", "127.0.0.1"]
        with self.log_path.open("wb") as log:
            self.process = subprocess.Popen(
                [*command, "--port", str(self.port)], cwd=ROOT, env={**kept, **given}, stdout=log,
                stderr=subprocess.STDOUT,
            )  # fmt: skip

    def wait_until_ready(self, limit_s: float = 180) -> "Server":
        ends_s = time.monotonic() + limit_s
        while time.monotonic() < ends_s and self.process.poll() is None:
            if self.is_ready():
                return self
            time.sleep(0.1)
        raise AssertionError(self.log())

    def is_ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/readyz", timeout=2).status_code == 200
        except httpx.HTTPError:
            return False

    def log(self) -> str:
        return self.log_path.read_text()

    def log_line(self, holding: str) -> str:
        """The log line that holds a text, as soon as it is written: just after the answer is."""
        ends_s = time.monotonic() + 20
        while time.monotonic() < ends_s:
            for line in self.log().splitlines():
                if holding in line:
                    return line
            time.sleep(0.02)
        raise AssertionError(self.log())

    def worker(self) -> psutil.Process:
        [worker] = psutil.Process(self.process.pid).children()
        return worker

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


class Client:
    """Requests to one server, with the token unless told otherwise."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._http = httpx.Client(base_url=server.url, headers=BEARER, timeout=30)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._http, name)

    def decide(self, timeout: float = 30, **changes: Any) -> httpx.Response:
        return self._http.post("/decide", json={**ROW, **changes}, timeout=timeout)

    def sleep(self, seconds: float, timeout: float = 30) -> Callable[[], httpx.Response]:
        return lambda: self.decide(state={"sleep": seconds}, timeout=timeout)

    def send(self, body: bytes, path: str = "/decide", **headers: str) -> httpx.Response:
        return self._http.post(path, content=body, headers={**JSON, **headers})

    def counts(self) -> dict[str, int]:
        """The scripted scorer's own counts: calls, ended, overlaps."""
        pairs = self._http.get("/health").json()["device_name"].split()
        return {name: int(count) for name, count in (pair.split("=") for pair in pairs)}

    def metric(self, start: str) -> float:
        lines = self._http.get("/metrics").text.splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith(start))


class Gate:
    """A file that scripted engines wait for: a call is known to run, and ends when a test says."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "gate"

    @property
    def state(self) -> dict[str, str]:
        """The state of a decision that lasts until the gate is open."""
        return {"until": str(self._path)}

    @property
    def premise(self) -> str:
        """The same of a pair."""
        return f"until {self._path} "

    def open(self) -> None:
        self._path.touch()

    def wait_for_who_waits(self) -> None:
        """Return when a call runs and waits for the gate."""
        wait_until(Path(f"{self._path}.waits").exists)


def wait_until(holds: Callable[[], object], limit_s: float = 30) -> None:
    ends_s = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < ends_s, "it never held"
        time.sleep(0.02)


def error_of(response: httpx.Response) -> tuple[int, str]:
    """Status and code of an error response, whose shape is checked on the way."""
    body = response.json()
    assert list(body) == ["error"]
    assert list(body["error"]) == ["code", "message"]
    assert response.headers["content-type"] == "application/json"
    assert body["error"]["message"].endswith(".")
    return response.status_code, body["error"]["code"]


def raw(server: Server, body: bytes, declared_bytes: int) -> bytes:
    """Send a POST /decide byte by byte as told; return the whole answer."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        head = (
            "POST /decide HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
            f"Authorization: Bearer {TOKEN}\r\nContent-Length: {declared_bytes}\r\n\r\n"
        )
        connection.sendall(head.encode() + body)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def send_and_leave(
    server: Server,
    path: str,
    body: dict[str, Any],
    request_id: str,
    when: Callable[[], object] | None = None,
) -> None:
    """Send a request, hang up when told, or once it was taken; return when that is logged."""
    content = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: x\r\nX-Request-Id: {request_id}\r\n"
        f"Authorization: Bearer {TOKEN}\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall(head.encode() + content)
        if when is None:  # one that comes later is answered
            httpx.get(f"{server.url}/health").raise_for_status()
        else:
            when()
    assert "status=499 code=client_closed" in server.log_line(f"request_id={request_id} ")


def together(*calls: Callable[[], Any], gap_s: float = 0.15) -> list[Any]:
    """Run calls in threads, started one after the other; an HTTP error counts as the answer."""
    answers: list[Any] = [None] * len(calls)

    def run(index: int) -> None:
        try:
            answers[index] = calls[index]()
        except httpx.HTTPError as error:
            answers[index] = error

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(calls))]
    for thread in threads:
        thread.start()
        time.sleep(gap_s)
    for thread in threads:
        thread.join()
    return answers
