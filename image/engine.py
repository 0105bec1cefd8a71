"""A container engine of this host: docker, podman or buildah; knows nothing of what is built."""

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

PROBE_TIMEOUT_S = 30


class NoEngine(Exception):
    """No engine of this host can build an image; the message says what to install."""


@dataclass(frozen=True, slots=True)
class Engine:
    """One of the three, by its command."""

    name: Literal["docker", "podman", "buildah"]

    def build_command(
        self,
        context: Path,
        dockerfile: Path,
        tag: str,
        mounts: Mapping[str, Path],
        arguments: Mapping[str, str],
    ) -> list[str]:
        """Return the command that builds an image.

        Args:
            context: the directory that COPY reads.
            dockerfile: may lie outside of it.
            tag: name of the image.
            mounts: directories that `RUN --mount=type=bind,from=NAME` may read, by name.
            arguments: values of ARG lines.
        """
        command = [self.name, "build", "--file", str(dockerfile), "--tag", tag]
        if self.name != "docker":
            # The OCI format has no health check, and neither engine caches layers unless told to.
            command += ["--format", "docker", "--layers", "--pull=false"]
        for name, directory in mounts.items():
            command += ["--build-context", f"{name}={directory}"]
        for name, value in arguments.items():
            command += ["--build-arg", f"{name}={value}"]
        return [*command, str(context)]

    def size(self, tag: str) -> str:
        """Return the size of an image, unpacked, as the engine words it."""
        command = [self.name, "images", "--format", "{{.Size}}", tag]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def find_engine() -> Engine:
    """Return the first engine that works.

    Raises:
        NoEngine: none does.
    """
    if shutil.which("docker") and _answers(["docker", "info"]):
        return Engine("docker")
    if shutil.which("podman"):
        return Engine("podman")
    if shutil.which("buildah"):
        return Engine("buildah")
    raise NoEngine(
        "Nothing here can build an image: install podman or buildah (`apt-get install podman`, "
        "`dnf install podman`), or docker 23 or newer and start its daemon."
    )


def _answers(command: list[str]) -> bool:
    try:
        done = subprocess.run(command, capture_output=True, timeout=PROBE_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0
