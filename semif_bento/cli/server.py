"""A `bentoml serve` process of this project: start it, wait until it is ready, stop it.

Knows nothing of requests, tokens or what is printed about the server.
"""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import semif_bento
from semif_bento.errors import StartupError

SERVICE = "service:SemIf"
POLL_S = 0.2
# A loading server holds its socket open and answers nothing, so every probe needs its own limit.
PROBE_TIMEOUT_S = 2.0
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # never through a proxy


@dataclass(slots=True)
class Server:
    """A running server process in a session of its own, so that a terminal's Ctrl-C misses it."""

    process: subprocess.Popen[bytes]
    url: str

    def wait_ready(self, timeout_s: float | None, on_wait: Callable[[float], None]) -> bool:
        """Wait until /readyz answers 200.

        Args:
            timeout_s: give up after so many seconds; None waits as long as the process lives.
            on_wait: called with the seconds waited, a few times a second.

        Returns:
            True when ready; False when the process ended before.

        Raises:
            StartupError: not ready in time.
        """
        start = time.monotonic()
        while self.process.poll() is None:
            waited_s = time.monotonic() - start
            if self._is_ready():
                return True
            if timeout_s is not None and waited_s > timeout_s:
                raise StartupError(f"The service was not ready after {timeout_s:g} seconds.")
            on_wait(waited_s)
            time.sleep(POLL_S)
        return False

    def stop(self, timeout_s: float = 30.0) -> int:
        """End the process by SIGTERM, which lets a running call finish; kill it after a time.

        Returns:
            The exit code; negative when a signal ended it.
        """
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            return self.process.wait()

    def _is_ready(self) -> bool:
        try:
            with _DIRECT.open(f"{self.url}/readyz", timeout=PROBE_TIMEOUT_S) as answer:
                return answer.status == 200
        except (urllib.error.URLError, OSError):
            return False


def start_server(
    environ: Mapping[str, str], host: str, port: int, output: IO[bytes] | None = None
) -> Server:
    """Start the service in a process of its own.

    Args:
        environ: the whole environment of the process.
        host: the address to bind.
        port: 1 to 65535.
        output: where stdout and stderr go; None leaves them with this process.

    Raises:
        StartupError: the port is taken, or this is not the project's own folder.
    """
    root = project_root()
    refuse_taken(host, port)
    command = [sys.executable, "-m", "bentoml", "serve", SERVICE]
    command += ["--host", host, "--port", str(port)]
    process = subprocess.Popen(
        command,
        cwd=root,
        env={"BENTOML_DO_NOT_TRACK": "True", **environ, "HF_HUB_OFFLINE": "1"},
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT if output else None,
        start_new_session=True,
    )
    return Server(process, f"http://{reachable(host)}:{port}")


def project_root() -> Path:
    """Return the folder that holds service.py.

    Raises:
        StartupError: the package was installed away from it.
    """
    root = Path(semif_bento.__file__).parents[1]
    if not (root / "service.py").is_file():
        raise StartupError("service.py does not lie beside the package; run in a project's clone.")
    return root


def reachable(host: str) -> str:
    """Return the address to call a server at that binds `host`, brackets around IPv6."""
    address = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)
    return f"[{address}]" if ":" in address else address


def free_port() -> int:
    """Return a loopback port that nothing listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def refuse_taken(host: str, port: int) -> None:
    """Refuse an address that cannot be bound, before a model is loaded for it.

    Raises:
        StartupError: the address is in use or not this machine's.
    """
    try:
        family, kind, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as exc:
        raise StartupError(f"{host}:{port} cannot be bound: {exc.strerror}.") from exc
