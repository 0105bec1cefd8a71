"""`make image`: pack the project as a Bento and build its OCI image with the engine that is there.

    python -m image.build                 torch's CUDA build, for a GPU host
    python -m image.build --lock runtime  torch's CPU build, where the package index has one

It knows nothing of running an image, and leaves nothing behind but the image.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from image import dockerfile, host
from image.engine import Engine, NoEngine, find_engine
from semif_bento.protocol import PROMPT_VERSION

PROJECT = Path(__file__).parents[1]
CHECKS = {"cuda": dockerfile.CHECK_CUDA, "runtime": dockerfile.CHECK_CPU}


class BuildFailed(Exception):
    """A step of the build failed; its output says why."""


def main() -> int:
    """Build the image and print its name and size; return the exit code."""
    parser = argparse.ArgumentParser(prog="make image", description="Build the OCI image.")
    parser.add_argument("--lock", choices=sorted(CHECKS), default="cuda", help="what to install")
    parser.add_argument("--tag", help="name of the image (default: semif-bento:VERSION)")
    arguments = parser.parse_args()
    tag = arguments.tag or f"semif-bento:{read_version(PROJECT)}"
    start_s = time.monotonic()
    try:
        engine = find_engine()
        print(f"building {tag} from requirements/{arguments.lock}.lock with {engine.name}")
        build_image(PROJECT, engine, arguments.lock, tag)
    except (NoEngine, BuildFailed, dockerfile.UnknownDockerfile) as exc:
        print(f"make image: {exc}", file=sys.stderr)
        return 1
    print(f"{tag}: {engine.size(tag)} in {time.monotonic() - start_s:.0f} s")
    return 0


def build_image(project: Path, engine: Engine, lock: str, tag: str) -> None:
    """Build the image of a project.

    Args:
        project: the project's folder.
        engine: what builds it.
        lock: "cuda" or "runtime", the file in requirements/ that is installed.
        tag: name of the image.

    Raises:
        BuildFailed: the Bento or the image could not be built.
        UnknownDockerfile: BentoML wrote a Dockerfile that is not the one we know.
    """
    with tempfile.TemporaryDirectory(prefix="semif-image-") as name:
        scratch = Path(name)
        bento = _build_bento(project, lock, scratch)
        written = (bento / "env" / "docker" / "Dockerfile").read_text(encoding="utf-8")
        ours = scratch / "Dockerfile"  # outside the context, whose files are part of layers
        ours.write_text(dockerfile.adapt(written, CHECKS[lock], _labels(project, lock)))
        mounted = scratch / "host"
        mounted.mkdir()
        arguments = host.gather(mounted)
        command = engine.build_command(bento, ours, tag, {"host": mounted}, arguments)
        _run(command, project)


def read_version(project: Path) -> str:
    """Return the version of a project, without importing it."""
    text = (project / "semif_bento" / "__init__.py").read_text(encoding="utf-8")
    (version,) = re.findall(r'^__version__ = "(.+)"$', text, flags=re.MULTILINE)
    return version


def _build_bento(project: Path, lock: str, scratch: Path) -> Path:
    """Pack the project into a store of its own and return the Bento's folder."""
    bentofile = scratch / "bentofile.yaml"
    text = (project / "bentofile.yaml").read_text(encoding="utf-8")
    bentofile.write_text(text.replace("requirements/cuda.lock", f"requirements/{lock}.lock"))
    version, store = read_version(project), scratch / "bentoml"
    command = [sys.executable, "-m", "bentoml", "build", "--bentofile", str(bentofile)]
    _run([*command, "--version", version, "."], project, BENTOML_HOME=str(store))
    return store / "bentos" / "semif" / version


def _labels(project: Path, lock: str) -> dict[str, str]:
    labels = {
        "org.opencontainers.image.title": "semif-bento",
        "org.opencontainers.image.version": read_version(project),
        "org.opencontainers.image.licenses": "MIT",
        "semif.protocol": PROMPT_VERSION,
        "semif.lock": lock,
    }
    if revision := _revision(project):
        labels["org.opencontainers.image.revision"] = revision
    return labels


def _revision(project: Path) -> str | None:
    """Return the commit that the project's folder stands at, marked when it was edited since."""
    git = ["git", "-C", str(project)]
    try:
        head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True)
        state = subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True)
    except FileNotFoundError:
        return None
    if head.returncode or state.returncode:
        return None
    return head.stdout.strip() + ("-edited" if state.stdout.strip() else "")


def _run(command: list[str], directory: Path, **more: str) -> None:
    # bentoml calls uv, which lies beside this Python and may not be on the caller's path
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    environ = {**os.environ, "PATH": path, "BENTOML_DO_NOT_TRACK": "True", **more}
    sys.stdout.flush()
    # file modes are part of a layer's identity
    code = subprocess.run(command, cwd=directory, env=environ, umask=0o022).returncode
    if code:
        raise BuildFailed(f"`{Path(command[0]).name} {command[1]}` ended with exit code {code}.")


if __name__ == "__main__":
    sys.exit(main())
