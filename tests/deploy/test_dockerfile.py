import os
import subprocess
import sys
from pathlib import Path

import pytest

from image import dockerfile

LABELS = {"version": "1", "odd": 'a "quoted" one'}


# In a process of its own: importing this part of BentoML warns, and warnings are errors here.
WRITE = """
import pathlib, sys
from _bentoml_impl.docker import generate_dockerfile
from bentoml._internal.bento.bento import ImageInfo
commands = ["apt-get update && apt-get install -q -y ca-certificates build-essential git"]
info = ImageInfo(base_image="python:3.11-slim", python_version="3.11", commands=commands)
print(generate_dockerfile(info, pathlib.Path(sys.argv[1]), enable_buildkit=False))
"""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The Dockerfile that the pinned BentoML writes for a Debian base image."""
    home = tmp_path_factory.mktemp("home")
    environ = os.environ | {"BENTOML_HOME": str(home), "BENTOML_DO_NOT_TRACK": "True"}
    command = [sys.executable, "-c", WRITE, str(home)]
    done = subprocess.run(command, env=environ, check=True, capture_output=True, text=True)
    return done.stdout


def test_the_image_has_no_compilers_and_mounts_the_host_only_while_it_installs(
    written: str,
) -> None:
    adapted = dockerfile.adapt(written, dockerfile.CHECK_CUDA, LABELS)
    assert "build-essential" in written
    assert "build-essential" not in adapted
    runs = [line for line in adapted.splitlines() if line.startswith("RUN ")]
    mounted = [line for line in runs if "--mount=type=bind,from=host" in line]
    assert len(mounted) == 3
    assert all("uv" in line or "if [ -d ./src ]" in line for line in mounted)


def test_torch_is_checked_before_the_source_arrives_and_labels_come_last(written: str) -> None:
    lines = dockerfile.adapt(written, "check()", LABELS).splitlines()
    check = lines.index('RUN ["python", "-c", "check()"]')
    source = next(n for n, line in enumerate(lines) if line.endswith(" . ./"))
    install = next(n for n, line in enumerate(lines) if "pip install -r" in line)
    assert install < check < source
    assert lines[-2:] == ['LABEL version="1"', 'LABEL odd="a \\"quoted\\" one"']
    assert lines[-4] == "ENV BENTOML_HOME=/tmp/bentoml"
    assert lines[-3].startswith("HEALTHCHECK ")


@pytest.mark.parametrize("marker", ["FROM ", "RUN apt-get update", "RUN { command -v uv", ". ./"])
def test_another_dockerfile_than_the_one_we_know_is_refused(written: str, marker: str) -> None:
    with pytest.raises(dockerfile.UnknownDockerfile, match="0 lines match"):
        dockerfile.adapt(written.replace(marker, "# "), "", {})


@pytest.mark.parametrize(
    ("built", "flags", "code"),
    [
        ("cuda", "sm_80 sm_90 sm_100 sm_120", 0),
        ("cuda", "sm_80 sm_90 sm_100", 1),
        ("cuda", "sm_900 sm_1200", 1),
        ("cpu", "", 0),
        ("cpu", "sm_90", 1),
    ],
)
def test_a_torch_without_the_kernels_that_are_needed_fails_the_build(
    tmp_path: Path, built: str, flags: str, code: int
) -> None:
    cuda = "13.0" if flags else None
    (tmp_path / "torch.py").write_text(
        "from types import SimpleNamespace as N\n__version__ = 'x'\n"
        f"version = N(cuda={cuda!r})\n_C = N(_cuda_getArchFlags=lambda: {flags!r})\n"
    )
    check = dockerfile.CHECK_CUDA if built == "cuda" else dockerfile.CHECK_CPU
    done = subprocess.run([sys.executable, "-c", check], cwd=tmp_path, capture_output=True)
    assert done.returncode == code, done.stderr
