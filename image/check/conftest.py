"""What the image's check stands on: engine, base image, two builds, demo weights, one container.

Everything lies in one scratch folder with a container storage of its own, which goes away with the
session, however that ends. Figures that tests measure are printed last.
"""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

from image.build import PROJECT
from image.check import debian
from image.check.builds import Build, build, copy_project, edit
from image.check.container import Container, podman
from semif_bento.cli.environment import read_env_file
from semif_bento.engine.loading import model_directory
from semif_bento.engine.sources import locate

SESSION_LIMIT_S = 1200
READY_LIMIT_S = 180
TOKEN = "image-check-token-0123456789-0123456789"  # never in the image, as one test shows
USER = 1034  # BentoML's user
STORAGE = '[storage]\ndriver = "overlay"\ngraphroot = "{0}/graph"\nrunroot = "{0}/run"\n'
# Both limits are named, or `podman run` asks for higher ones than a fenced-in host may give.
CONTAINERS = """\
[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
"""
PLANTED = (".env", "configs/production.env", "semif_bento/token.txt", "semif_bento/x.safetensors")
FIGURES = pytest.StashKey[dict[str, str]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[FIGURES] = {}


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    for name, value in config.stash[FIGURES].items():
        terminalreporter.write_line(f"{name:<28} {value}")


@pytest.fixture(scope="session")
def figures(request: pytest.FixtureRequest) -> dict[str, str]:
    return request.config.stash[FIGURES]


@pytest.fixture(scope="session", autouse=True)
def bounded() -> Iterator[None]:
    """End in an orderly way when the time is over or the run is told to end."""

    def stop(number: int, frame: FrameType | None) -> None:
        pytest.exit(f"image-check ended by {signal.Signals(number).name}", returncode=1)

    for number in (signal.SIGALRM, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    signal.alarm(SESSION_LIMIT_S)
    yield
    signal.alarm(0)


@pytest.fixture(scope="session")
def scratch(bounded: None) -> Iterator[Path]:
    """A folder that holds everything, with podman pointed to a storage inside of it."""
    try:
        debian.install_tools()
    except debian.Unfit as exc:
        pytest.exit(str(exc), returncode=1)
    folder = Path(tempfile.mkdtemp(prefix="semif-image-check-"))
    (folder / "storage.conf").write_text(STORAGE.format(folder))
    (folder / "containers.conf").write_text(CONTAINERS)
    patch = pytest.MonkeyPatch()
    patch.setenv("CONTAINERS_STORAGE_CONF", str(folder / "storage.conf"))
    patch.setenv("CONTAINERS_CONF", str(folder / "containers.conf"))
    patch.setenv("BUILDAH_ISOLATION", "chroot")
    patch.setenv("TMPDIR", str(folder))
    patch.setattr(tempfile, "tempdir", None)
    try:
        yield folder
        podman("rm", "--all", "--force", "--time", "0")
    finally:
        patch.undo()
        _unmount_below(folder)
        # never into what could not be unmounted
        subprocess.run(["rm", "-rf", "--one-file-system", str(folder)], check=True)


@pytest.fixture(scope="session")
def base(scratch: Path, figures: dict[str, str]) -> str:
    """A stand-in for the base image that bentofile.yaml names, made of Debian's packages."""
    (name,) = re.findall(r"^  base_image: (\S+)$", (PROJECT / "bentofile.yaml").read_text(), re.M)
    start_s = time.monotonic()
    debian.make_base(scratch / "base.tar")
    podman("import", "--quiet", str(scratch / "base.tar"), name, timeout_s=120)
    (scratch / "base.tar").unlink()
    figures["base image"] = f"{time.monotonic() - start_s:.0f} s"
    return name


@pytest.fixture(scope="session")
def project(scratch: Path) -> Path:
    """A copy of the project with files beside the source that must stay out of the image."""
    copy = copy_project(scratch / "project")
    for name in PLANTED:
        (copy / name).write_text(f"SEMIF_API_TOKEN={TOKEN}\n")
    return copy


@pytest.fixture(scope="session")
def first(base: str, project: Path, figures: dict[str, str]) -> Build:
    built = build(project, "semif-bento:first")
    figures["first build"] = f"{built.seconds:.0f} s"
    return built


@pytest.fixture(scope="session")
def second(first: Build, project: Path, figures: dict[str, str]) -> Build:
    """The image after a version bump and a new line of source."""
    edit(
        project / "semif_bento" / "__init__.py",
        r'(?m)^__version__ = ".*"$',
        '__version__ = "99.0.0"',
    )
    edit(project / "semif_bento" / "errors.py", r"\Z", "\n# one more line of source\n")
    built = build(project, "semif-bento:second")
    ratio = first.seconds / built.seconds
    figures["rebuild after a bump"] = f"{built.seconds:.1f} s, 1/{ratio:.0f} of the first"
    size_bytes = int(podman("image", "inspect", "--format", "{{.Size}}", built.tag))
    figures["image"] = f"{size_bytes / 1e9:.2f} GB, unpacked"
    return built


@pytest.fixture(scope="session")
def weights(scratch: Path) -> Path:
    """The demo's model as a directory, converted once into the project's cache, readable by all."""
    demo = read_env_file(PROJECT / "configs" / "local.env")
    source = locate(demo["SEMIF_MODEL"], None)
    converted = model_directory(source, "bfloat16", PROJECT / ".cache" / "semif-bento")
    copy = shutil.copytree(converted, scratch / "weights")
    for file in copy.iterdir():
        file.chmod(0o644)
    return copy


@pytest.fixture(scope="session")
def token_file(scratch: Path) -> Path:
    """A token that the image's user alone may read."""
    path = scratch / "token"
    path.write_text(TOKEN)
    os.chown(path, USER, USER)
    path.chmod(0o400)
    return path


@pytest.fixture(scope="module")
def container(
    second: Build, weights: Path, token_file: Path, figures: dict[str, str]
) -> Iterator[Container]:
    """The image, serving the demo's model inside the fence."""
    environ = {
        "SEMIF_API_TOKEN_FILE": "/run/secrets/semif_api_token",
        "SEMIF_MODEL": "/models/demo",
        "SEMIF_REVISION": "demo",
        "SEMIF_DEVICE": "cpu",
        "SEMIF_TIMEOUT_S": "300",
        "OMP_NUM_THREADS": "1",
    }
    mounts = {weights: "/models/demo", token_file: "/run/secrets/semif_api_token"}
    running = Container(second.tag, environ, mounts)
    try:
        figures["container start to ready"] = f"{running.wait_ready(READY_LIMIT_S):.1f} s"
        yield running
    finally:
        running.remove()


def _unmount_below(folder: Path) -> None:
    mounts = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    for mount in sorted((m for m in mounts if m.startswith(f"{folder}/")), reverse=True):
        subprocess.run(["umount", "--lazy", mount], capture_output=True)
