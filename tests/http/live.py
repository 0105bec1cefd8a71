"""Real server processes on loopback, each with a BENTOML_HOME of its own."""

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
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
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
                [*command, "--port", str(port)], cwd=ROOT, env={**kept, **given}, stdout=log,
                stderr=subprocess.STDOUT,
            )  # fmt: skip

    def wait_until_ready(self, limit_s: float = 180) -> "Server":
        ends_s = time.monotonic() + limit_s
        while time.monotonic() < ends_s and self.process.poll() is None:
            try:
                if httpx.get(f"{self.url}/readyz", timeout=1).status_code == 200:
                    return self
            except httpx.HTTPError:
                pass
            time.sleep(0.1)
        raise AssertionError(self.log())

    def log(self) -> str:
        return self.log_path.read_text()

    def log_line(self, holding: str) -> str:
        """The log line that holds a text, as soon as it is written: just after the answer is."""
        ends_s = time.monotonic() + 5
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
            return self.process.wait(30)
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


def error_of(response: httpx.Response) -> tuple[int, str]:
    """Status and code of an error response, whose shape is checked on the way."""
    body = response.json()
    assert list(body) == ["error"]
    assert list(body["error"]) == ["code", "message"]
    assert response.headers["content-type"] == "application/json"
    assert body["error"]["message"].endswith(".")
    return response.status_code, body["error"]["code"]


def raw(server: Server, body: bytes, declared_bytes: int, hang_up: bool = False) -> bytes:
    """Send a POST /decide byte by byte as told; return the whole answer, none after hanging up."""
    port = int(server.url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        head = (
            "POST /decide HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
            f"Authorization: Bearer {TOKEN}\r\nContent-Length: {declared_bytes}\r\n\r\n"
        )
        connection.sendall(head.encode() + body)
        if hang_up:
            time.sleep(0.2)  # until the request has been taken
            return b""
        return b"".join(iter(lambda: connection.recv(65536), b""))


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
