"""Copies of the project and images built from them; knows nothing of running an image."""

import re
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from image.build import PROJECT, build_image
from image.check.container import podman
from image.engine import Engine


@dataclass(frozen=True, slots=True)
class Build:
    """An image, its layers from the base up, and how long it took to build."""

    tag: str
    seconds: float
    layers: list[str]


def tracked_files() -> list[str]:
    """Return the project's own files, as git knows them."""
    command = ["git", "-C", str(PROJECT), "ls-files", "-z"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True)
    return listed.stdout.rstrip("\0").split("\0")


def copy_project(target: Path) -> Path:
    """Copy the project's own files to a folder, which is made, and return it."""
    for name in tracked_files():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PROJECT / name, target / name)
    return target


def build(project: Path, tag: str) -> Build:
    """Build the image of a project with podman, for CPUs, and time it."""
    start_s = time.monotonic()
    build_image(project, Engine("podman"), "runtime", tag)
    seconds = time.monotonic() - start_s
    form = "{{range .RootFS.Layers}}{{println .}}{{end}}"
    return Build(tag, seconds, podman("image", "inspect", "--format", form, tag).split())


def edit(path: Path, pattern: str, replacement: str) -> None:
    """Replace the one place in a file that matches a pattern."""
    text, count = re.subn(pattern, replacement, path.read_text())
    if count != 1:
        raise AssertionError(f"{count} places in {path.name} match {pattern}")
    path.write_text(text)
