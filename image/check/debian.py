"""A container engine and a base image from Debian's packages, for a machine that has neither.

Knows nothing of the project. It needs root, because installing packages and making a root file
system do.
"""

import os
import shutil
import subprocess
from pathlib import Path

RELEASE = "bookworm"  # its Python is the one that the locks are for
# runc and not crun: crun 1.8 refuses control groups of the first version beside the second
PACKAGES = {  # by the tool that is looked for
    "podman": "podman",
    "runc": "runc",
    "mmdebstrap": "mmdebstrap",
    "systemd-analyze": "systemd",
    "docker-compose": "docker-compose",
}
PYTHON = ("ca-certificates", "python3-pip", "python3-venv")
INSTALL_TIMEOUT_S = 300
BASE_TIMEOUT_S = 300


class Unfit(Exception):
    """This machine cannot run the check; the message says what it would take."""


def install_tools() -> None:
    """Install the tools that are missing.

    Raises:
        Unfit: not root, or something is missing and this is not Debian.
    """
    if os.geteuid() != 0:
        raise Unfit("make image-check makes a root file system and runs containers: it needs root.")
    missing = [package for tool, package in PACKAGES.items() if not shutil.which(tool)]
    if not missing:
        return
    if not shutil.which("apt-get"):
        raise Unfit(
            f"make image-check needs {', '.join(missing)}; only on Debian it installs them."
        )
    apt = ["apt-get", "-qq", "-o", "DPkg::Lock::Timeout=120"]
    environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for step in (["update"], ["install", "-y", "--no-install-recommends", *missing]):
        done = subprocess.run(
            [*apt, *step], env=environ, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S
        )
        if done.returncode:
            raise Unfit(f"apt-get {step[0]} failed: {done.stderr.strip()}")


def make_base(tar: Path) -> None:
    """Write the root file system of a small Debian with Python, as `python:3.11-slim` has it.

    Raises:
        Unfit: it could not be made.
    """
    command = ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(PYTHON)}"]
    # The official image has a Python that pip may install into, and it is called python.
    command += ["--customize-hook=rm $1/usr/lib/python3.*/EXTERNALLY-MANAGED"]
    command += ["--customize-hook=ln -s /usr/bin/python3 $1/usr/local/bin/python"]
    done = subprocess.run(
        [*command, RELEASE, str(tar), *_mirrors()],
        capture_output=True,
        text=True,
        timeout=BASE_TIMEOUT_S,
    )
    if done.returncode:
        raise Unfit(f"mmdebstrap failed: {done.stderr.strip()}")


def _mirrors() -> list[str]:
    """Return the address this host takes Debian's packages from, if it is configured at all."""
    form = ["--format", "$(SITE)", f"Codename: {RELEASE}", "Component: main"]
    command = ["apt-get", "indextargets", *form, "Created-By: Packages"]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout.split()[:1]
