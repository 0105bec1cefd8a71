import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
COPIED = ("service.py", "bentofile.yaml", "LICENSE", "README.md", "pyproject.toml")
FOREIGN = (
    ".env",
    "configs/production.env",
    "tests/test_service.py",
    "docs/contract.md",
    "model.safetensors",
    "semif_bento/model.gguf",
    "semif_bento/token.txt",
)


@pytest.fixture(scope="module")
def bento(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Bento built from a copy of the project, with files beside the source that must stay out."""
    project = tmp_path_factory.mktemp("project")
    for name in ("semif_bento", "requirements"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(PROJECT / name, project / name, ignore=ignored)
    for name in COPIED:
        shutil.copy(PROJECT / name, project / name)
    for name in FOREIGN:
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text("must not be packed")
    home = tmp_path_factory.mktemp("home")
    env = os.environ | {"BENTOML_HOME": str(home), "BENTOML_DO_NOT_TRACK": "True"}
    command = [sys.executable, "-m", "bentoml", "build", "--output", "tag"]
    done = subprocess.run(command, cwd=project, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (built,) = (path.parent for path in home.glob("bentos/semif/*/bento.yaml"))
    return built


def test_a_bento_holds_the_service_and_its_package_and_nothing_else(bento: Path) -> None:
    source = bento / "src"
    packed = {str(path.relative_to(source)) for path in source.rglob("*") if path.is_file()}
    files = (path for path in (PROJECT / "semif_bento").rglob("*") if path.is_file())
    package = {str(path.relative_to(PROJECT)) for path in files if path.suffix != ".pyc"}
    assert packed == package | {"service.py", "LICENSE", "bentofile.yaml"}


def test_a_bento_installs_exactly_the_cuda_lock(bento: Path) -> None:
    asked = _pins(bento / "env" / "python" / "requirements.txt")
    assert asked == _pins(PROJECT / "requirements" / "cuda.lock")
    assert not any("smollm2" in pin or "pytest" in pin for pin in asked)


def _pins(path: Path) -> set[str]:
    lines = path.read_text().splitlines()
    return {line for line in lines if line and not line.startswith(("#", "-"))}
