import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from semif_bento.bench.classify import gpu_watch
from semif_bento.bench.classify.gpu_watch import GpuWatch, query_gpu

CARD = "GPU-1234"


@pytest.fixture
def says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """A nvidia-smi that prints what it is told to, notes how it was called, and may fail."""
    tool = tmp_path / "nvidia-smi"
    tool.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\n. {tmp_path}/script\n', encoding="ascii"
    )
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    def write(script: str) -> None:
        fresh = tmp_path / "fresh"
        fresh.write_text(script)
        fresh.replace(tmp_path / "script")

    write("true")
    return write


@pytest.fixture
def sleeper() -> Iterator["subprocess.Popen[bytes]"]:
    """A process that is a child of this one."""
    running = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield running
    running.kill()
    running.wait()


def watched() -> GpuWatch:
    return GpuWatch(lambda: query_gpu(CARD), interval_s=0.02)


def wait_for_samples(watch: GpuWatch, count: int) -> None:
    deadline = time.monotonic() + 30
    while watch.samples < count:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_card_that_is_ours_alone_leaves_the_run_valid(
    says: Callable[[str], None], tmp_path: Path
) -> None:
    says(f"echo {os.getpid()}")

    with watched() as watch:
        wait_for_samples(watch, 4)

    assert watch.fault() is None
    assert watch.samples >= 5
    call = (tmp_path / "calls").read_text().splitlines()[0]
    assert call == f"-i {CARD} --query-compute-apps=pid --format=csv,noheader,nounits"


def test_a_child_of_ours_is_ours(
    says: Callable[[str], None], sleeper: "subprocess.Popen[bytes]"
) -> None:
    says(f"echo {os.getpid()}; echo {sleeper.pid}")

    with watched() as watch:
        wait_for_samples(watch, 2)

    assert watch.fault() is None


def test_a_foreign_process_voids_the_run_even_when_it_leaves_again(
    says: Callable[[str], None],
) -> None:
    says(f"echo {os.getpid()}; echo 1")  # nobody's child

    with watched() as watch:
        wait_for_samples(watch, 2)
        says(f"echo {os.getpid()}")
        wait_for_samples(watch, watch.samples + 2)

    assert watch.fault() == "process 1 computed on the card too."


def test_a_foreign_process_that_comes_in_the_middle_is_seen(says: Callable[[str], None]) -> None:
    says(f"echo {os.getpid()}")

    with watched() as watch:
        wait_for_samples(watch, 2)
        assert watch.fault() is None
        says(f"echo {os.getpid()}; echo 1")
        wait_for_samples(watch, watch.samples + 2)

    assert watch.fault() == "process 1 computed on the card too."


def test_a_process_that_ended_before_it_could_be_looked_at_is_foreign(
    says: Callable[[str], None], sleeper: "subprocess.Popen[bytes]"
) -> None:
    sleeper.kill()
    sleeper.wait()
    says(f"echo {os.getpid()}; echo {sleeper.pid}")

    with watched() as watch:
        pass

    assert watch.fault() == f"process {sleeper.pid} computed on the card too."


def test_a_child_that_ended_stays_ours_and_its_id_given_anew_does_not(
    says: Callable[[str], None],
    sleeper: "subprocess.Popen[bytes]",
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    says(f"echo {os.getpid()}; echo {sleeper.pid}")
    start_time, descends = gpu_watch._start_time, gpu_watch._descends

    with watched() as watch:
        wait_for_samples(watch, 2)
        sleeper.kill()
        sleeper.wait()
        wait_for_samples(watch, watch.samples + 2)
        assert watch.fault() is None
        # A stranger gets the id: another start time, another parent.
        monkeypatch.setattr(
            gpu_watch, "_descends", lambda pid, of: pid != sleeper.pid and descends(pid, of)
        )
        monkeypatch.setattr(
            gpu_watch, "_start_time", lambda pid: 1 if pid == sleeper.pid else start_time(pid)
        )
        wait_for_samples(watch, watch.samples + 2)

    assert watch.fault() == f"process {sleeper.pid} computed on the card too."


@pytest.mark.parametrize(
    ("script", "error"),
    [
        ("exit 9", "CalledProcessError"),
        ("echo '[Insufficient Permissions]'", "ValueError"),
        ("exec sleep 30", "TimeoutExpired"),
    ],
)
def test_monitoring_that_fails_once_voids_the_run(
    says: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, script: str, error: str
) -> None:
    says(f"echo {os.getpid()}")

    with watched() as watch:
        wait_for_samples(watch, 1)
        says(script)
        if error == "TimeoutExpired":  # from here on, when no query that answers is asked any more
            monkeypatch.setattr(gpu_watch, "QUERY_TIMEOUT_S", 0.5)
        deadline = time.monotonic() + 30
        while watch.fault() is None:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        says(f"echo {os.getpid()}")

    assert watch.fault() == f"the card's processes could not be listed: {error}."


def test_no_nvidia_smi_voids_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with watched() as watch:
        pass

    assert watch.fault() == "the card's processes could not be listed: FileNotFoundError."


def test_a_list_that_never_shows_this_process_proves_nothing(says: Callable[[str], None]) -> None:
    says("true")

    with watched() as watch:
        wait_for_samples(watch, 2)

    fault = watch.fault()
    assert fault is not None
    assert fault.startswith("nvidia-smi never showed this process")
