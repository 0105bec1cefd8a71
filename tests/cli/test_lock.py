import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copy(PROJECT / "pyproject.toml", tmp_path)
    shutil.copytree(PROJECT / "requirements", tmp_path / "requirements")
    return tmp_path


def check(directory: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(directory / "requirements" / "lock.py"), "--check"]
    return subprocess.run(command, capture_output=True, text=True)


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


def test_the_projects_locks_agree(copy: Path) -> None:
    done = check(copy)

    assert (done.returncode, done.stdout) == (0, "locks agree with pyproject.toml\n")


@pytest.mark.parametrize(
    ("name", "old", "new", "problem"),
    [
        ("pyproject.toml", '"pytest>=9"', '"pytest>=9.0"', "dev.lock is older than pyproject"),
        ("pyproject.toml", "torch==2.13.0", "torch==2.13.1", "runtime.lock pins 2.13.0 for torch"),
        ("requirements/runtime.lock", "anyio==", "# ", "anyio"),
        ("requirements/runtime.lock", "tqdm==", "tqdm==1", "is installed, 1"),
        (
            "requirements/cuda.lock",
            "torch===",
            "torch==",
            "cuda.lock does not ask for torch by ===",
        ),
        ("requirements/cuda.lock", "anyio==", "# ", "cuda.lock pins None for anyio"),
        ("requirements/cuda.lock", "sources: ", "sources: 0", "cuda.lock is older than pyproject"),
        ("requirements/dev.lock", "ruff==", "no-such-package==", "not installed; run make setup"),
    ],
)
def test_whatever_disagrees_is_named(
    copy: Path, name: str, old: str, new: str, problem: str
) -> None:
    edit(copy / name, old, new)

    done = check(copy)

    assert done.returncode == 1
    assert problem in done.stdout
