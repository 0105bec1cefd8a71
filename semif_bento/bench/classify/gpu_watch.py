"""Watch who else computes on the card while a benchmark runs; knows nothing of what is measured.

Samples of `nvidia-smi` in a thread: evidence, not a lease. Who comes and goes between two samples
is not seen.
"""

import os
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

INTERVAL_S = 0.5
QUERY_TIMEOUT_S = 20.0


def query_gpu(card: str) -> set[int]:
    """Return the ids of the processes that compute on a card, named as nvidia-smi's -i takes it.

    Raises:
        OSError, subprocess.SubprocessError, ValueError: nvidia-smi is missing, failed, hung or
            said something that is no list of process ids.
    """
    done = subprocess.run(
        ["nvidia-smi", "-i", card, "--query-compute-apps=pid", "--format=csv,noheader,nounits"],
        capture_output=True,
        text=True,
        timeout=QUERY_TIMEOUT_S,
        check=True,
    )
    return {int(line) for line in done.stdout.split("\n") if line.strip()}


class GpuWatch:
    """Samples a card's processes until the `with` block ends; only ours may be among them.

    Ours are this process and its descendants. A process that was ours stays ours as long as its
    start time says that it is the same one: an id that was given anew is foreign.

    Args:
        query: returns the process ids on the card.
        interval_s: pause between two samples.
    """

    def __init__(self, query: Callable[[], set[int]], interval_s: float = INTERVAL_S) -> None:
        self._query, self._interval_s = query, interval_s
        self._known: dict[int, int] = {}  # what was ours: process id → start time
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="gpu-watch", daemon=True)
        self.samples = 0
        self.longest_gap_s = 0.0
        self._fault: str | None = None
        self._saw_itself = False
        self._sampled_at = time.monotonic()

    def __enter__(self) -> Self:
        """Take the first sample at once."""
        self._sample()
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        """Take a last sample, so that what came at the end is seen."""
        self._over.set()
        self._thread.join()
        self._sample()

    def fault(self) -> str | None:
        """Return why the run is void, or None; complete once the `with` block has ended."""
        if self._fault is None and self._over.is_set() and not self._saw_itself:
            return "nvidia-smi never showed this process, so it would show no other either."
        return self._fault

    def _watch(self) -> None:
        while not self._over.wait(self._interval_s):
            self._sample()

    def _sample(self) -> None:
        try:
            found = self._query()
        except (OSError, subprocess.SubprocessError, ValueError) as exc:
            self._describe(f"the card's processes could not be listed: {type(exc).__name__}.")
            return
        now = time.monotonic()
        self.longest_gap_s = max(self.longest_gap_s, now - self._sampled_at)
        self._sampled_at = now
        self.samples += 1
        self._saw_itself = self._saw_itself or os.getpid() in found
        foreign = sorted(pid for pid in found if not self._is_ours(pid))
        if foreign:
            self._describe(f"process {foreign[0]} computed on the card too.")

    def _describe(self, fault: str) -> None:
        self._fault = self._fault or fault  # the first says most

    def _is_ours(self, pid: int) -> bool:
        started = _start_time(pid)
        if started is None:
            return pid in self._known  # it ended since nvidia-smi saw it
        if _descends(pid, os.getpid()):
            self._known[pid] = started
            return True
        return self._known.get(pid) == started  # its parent ended before it


def _descends(pid: int, ancestor: int) -> bool:
    while pid > 1:
        if pid == ancestor:
            return True
        fields = _stat(pid)
        if fields is None:
            return False
        pid = int(fields[1])
    return False


def _start_time(pid: int) -> int | None:
    """Return a process's start in clock ticks since boot; None when there is none."""
    fields = _stat(pid)
    return None if fields is None else int(fields[19])


def _stat(pid: int) -> list[str] | None:
    """Return the fields of a process's status from its state on; a name may hold anything."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
