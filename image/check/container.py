"""One container of the image: started fenced in, called from outside, stopped.

Knows nothing of what is asked of it. It runs podman as root.
"""

import ctypes
import json
import os
import subprocess
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx

CLONE_NEWNET = 0x40000000
URL = "http://127.0.0.1:3000"
COMMAND_TIMEOUT_S = 60
# No capability, no network but its own loopback, nothing to write to but a bounded /tmp, no way to
# gain a privilege, a bound on memory and on processes.
FENCE = (
    *("--network", "none", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"),
    *("--read-only", "--read-only-tmpfs=false", "--tmpfs", "/tmp:size=64m,mode=1777"),
    *("--memory", "2g", "--pids-limit", "256", "--no-healthcheck"),
)


class Container:
    """A container that runs; its files and its process are looked at from outside."""

    def __init__(
        self, image: str, environ: Mapping[str, str], mounts: Mapping[Path, str] | None = None
    ) -> None:
        """Start it; `mounts` are paths of this host by where the container reads them."""
        options = [part for pair in environ.items() for part in ("--env", "=".join(pair))]
        for source, target in (mounts or {}).items():
            options += ["--volume", f"{source}:{target}:ro"]
        self.started_s = time.monotonic()
        self.id = podman("run", "--detach", *FENCE, *options, image).strip()
        # Threads that have joined the container's network; none but them can reach its loopback.
        self._callers = ThreadPoolExecutor(4, initializer=_join_network, initargs=(self._pid(),))

    def call(self, method: str, path: str, **more: Any) -> httpx.Response:
        """Send a request from within the container's network and wait for the answer."""
        return self.begin_call(method, path, **more).result()

    def begin_call(self, method: str, path: str, **more: Any) -> "Future[httpx.Response]":
        """Send a request and return at once."""
        more = {"timeout": 300, "trust_env": False, **more}
        return self._callers.submit(httpx.request, method, URL + path, **more)

    def wait_ready(self, limit_s: float) -> float:
        """Wait for /readyz and return the seconds since the start; fail with the log if it ends."""
        while time.monotonic() - self.started_s < limit_s and self.is_running():
            try:
                if self.call("GET", "/readyz", timeout=2).status_code == 200:
                    return time.monotonic() - self.started_s
            except httpx.HTTPError:
                pass
            time.sleep(0.1)
        raise AssertionError(f"not ready\n{self.log()}")

    def wait_until(self, holds: Callable[[], bool], limit_s: float) -> None:
        """Wait until something holds; fail with the log if it does not in time."""
        ends_s = time.monotonic() + limit_s
        while not holds():
            if time.monotonic() > ends_s:
                raise AssertionError(f"not in time\n{self.log()}")
            time.sleep(0.05)

    def run(self, *command: str) -> "subprocess.CompletedProcess[str]":
        """Run a command inside of it."""
        return _podman("exec", self.id, *command)

    def stop(self, grace_s: int) -> int:
        """Send SIGTERM, SIGKILL after the grace; return the exit code."""
        podman("stop", "--time", str(grace_s), self.id, timeout_s=grace_s + COMMAND_TIMEOUT_S)
        return self._state()["ExitCode"]

    def wait_end(self, limit_s: float) -> int:
        """Wait until it ends by itself and return its exit code."""
        return int(podman("wait", self.id, timeout_s=limit_s))

    def log(self) -> str:
        """Return what it has written to stdout and stderr."""
        done = _podman("logs", self.id)
        return done.stdout + done.stderr

    def is_running(self) -> bool:
        """Tell whether its process lives."""
        return self._state()["Running"]

    def remove(self) -> None:
        """End and remove it, whatever state it is in."""
        self._callers.shutdown(wait=False, cancel_futures=True)
        podman("rm", "--force", "--time", "0", self.id)

    def _pid(self) -> int:
        return self._state()["Pid"]

    def _state(self) -> dict[str, Any]:
        return json.loads(podman("container", "inspect", self.id))[0]["State"]


def podman(*arguments: str, timeout_s: float = COMMAND_TIMEOUT_S) -> str:
    """Run a podman command and return its stdout; fail with its stderr."""
    done = _podman(*arguments, timeout_s=timeout_s)
    if done.returncode:
        raise AssertionError(f"podman {arguments[0]} failed: {done.stderr}")
    return done.stdout


def _podman(
    *arguments: str, timeout_s: float = COMMAND_TIMEOUT_S
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(["podman", *arguments], capture_output=True, text=True, timeout=timeout_s)


def _join_network(pid: int) -> None:
    """Move the calling thread, and it alone, into the network of a process."""
    libc = ctypes.CDLL(None, use_errno=True)  # os.setns came with Python 3.12
    with open(f"/proc/{pid}/ns/net") as network:
        if libc.setns(network.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
