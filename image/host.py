"""What this host uses to reach its package index: certificates and wheel houses, found at run time.

Knows nothing of images; nothing it finds is written into the project.
"""

import ast
import os
import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

# Where a build finds what `gather` put together, and the variables that point pip and uv there.
MOUNT = "/run/host"
CERTIFICATES, WHEELS = "certificates.pem", "wheels"
BUILD_ARGUMENTS = {
    "PIP_CERT": f"{MOUNT}/{CERTIFICATES}",
    "SSL_CERT_FILE": f"{MOUNT}/{CERTIFICATES}",
    "UV_FIND_LINKS": f"{MOUNT}/{WHEELS}",
}


def gather(directory: Path) -> dict[str, str]:
    """Put this host's certificates and wheels into a directory that is mounted while building.

    Args:
        directory: existing and empty; on the file system of the wheel house, wheels are linked.

    Returns:
        The build arguments that point to them, by name; none for what this host does not have.
    """
    arguments = dict(BUILD_ARGUMENTS)
    if bundle := find_certificates():
        shutil.copyfile(bundle, directory / CERTIFICATES)
    else:
        del arguments["PIP_CERT"], arguments["SSL_CERT_FILE"]
    (directory / WHEELS).mkdir()
    for wheel in find_wheels():
        _link_or_copy(wheel, directory / WHEELS / wheel.name)
    return arguments


def find_certificates() -> Path | None:
    """Return the file with the certificate authorities that this host trusts, if it has one."""
    candidates = [
        os.environ.get("PIP_CERT"),
        *_pip_configuration("cert"),
        ssl.get_default_verify_paths().cafile,  # SSL_CERT_FILE, else what OpenSSL was built with
        "/etc/ssl/certs/ca-certificates.crt",
        "/etc/pki/tls/certs/ca-bundle.crt",
    ]
    return next((Path(c) for c in candidates if c and Path(c).is_file()), None)


def find_wheels() -> list[Path]:
    """Return the wheels in the local directories that pip is configured to look into."""
    places = (text.removeprefix("file://") for text in _pip_configuration("find-links"))
    houses = dict.fromkeys(map(Path, places))
    return [wheel for house in houses if house.is_dir() for wheel in sorted(house.glob("*.whl"))]


def _pip_configuration(option: str) -> Iterator[str]:
    """Yield the values of an option of pip, whether a file or the environment sets it."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    for line in done.stdout.splitlines():
        name, _, value = line.partition("=")
        if name.rpartition(".")[2] == option:
            yield from ast.literal_eval(value).split()


def _link_or_copy(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
