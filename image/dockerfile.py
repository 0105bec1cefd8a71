"""Turn the Dockerfile that BentoML writes into the image's own; knows nothing of who builds it.

BentoML 1.4 has no setting for what is changed here. Every change asks for the line it replaces, so
another BentoML stops the build instead of building something else.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping

from image.host import BUILD_ARGUMENTS, MOUNT

# The card families an image must have kernels for: Hopper and consumer Blackwell.
ARCHITECTURES = ("sm_90", "sm_120")

CHECK_CUDA = f"""\
import sys, torch
have = torch._C._cuda_getArchFlags().split()
print("torch", torch.__version__, "has kernels for", *have)
missing = [a for a in {ARCHITECTURES!r} if a not in have]
sys.exit(f"no kernels for {{missing}}" if missing else 0)"""

CHECK_CPU = """\
import sys, torch
print("torch", torch.__version__)
sys.exit("the package index has no CPU build of torch" if torch.version.cuda else 0)"""

# The one place the server writes to, so that the root file system can be read-only. BentoML's own
# Dockerfile sets it, and an earlier ENV wins over the `envs` of bentofile.yaml.
WRITABLE = "BENTOML_HOME=/tmp/bentoml"

PROBE = """\
import os, urllib.request as u
port = os.environ.get('PORT') or os.environ.get('BENTOML_PORT') or '3000'
u.build_opener(u.ProxyHandler({})).open(f'http://127.0.0.1:{port}/readyz', timeout=4)"""


class UnknownDockerfile(Exception):
    """BentoML's Dockerfile does not have the lines that this module changes."""


def adapt(dockerfile: str, checks: str, labels: Mapping[str, str]) -> str:
    """Return the Dockerfile of the image.

    Compilers are left out, the host's certificates and wheels are mounted while packages are
    installed, the installed torch is checked, and what has no layer of its own ends the image: a
    writable home, a health check, labels.

    Args:
        dockerfile: as `bentoml build` wrote it.
        checks: Python that ends with a code other than 0 when the installed torch is wrong.
        labels: labels of the image, which may change with every build.

    Raises:
        UnknownDockerfile: a line to change is missing or there more than once.
    """
    text = _replace(r"^RUN apt-get update .*build-essential.*\n", "", dockerfile)
    text = _replace(r"^(FROM .*\n)", rf"\1{_lines(f'ARG {a}' for a in BUILD_ARGUMENTS)}", text)
    mount = f"RUN --mount=type=bind,from=host,target={MOUNT} "
    for step in (r"\{ command -v uv", "UV_PYTHON_INSTALL_DIR", r"if \[ -d \./src \]"):
        text = _replace(rf"^RUN (?={step})", mount, text)
    check = "RUN " + json.dumps(["python", "-c", checks])
    text = _replace(r"^(COPY .* \. \./)$", lambda line: f"{check}\n\n{line[0]}", text)
    return text + _lines([f"ENV {WRITABLE}", _health_check(), *map(_label, labels.items())])


def _replace(pattern: str, replacement: str | Callable[[re.Match[str]], str], text: str) -> str:
    changed, count = re.subn(pattern, replacement, text, flags=re.MULTILINE)
    if count != 1:
        raise UnknownDockerfile(f"{count} lines match {pattern!r}; BentoML's Dockerfile changed.")
    return changed


def _health_check() -> str:
    # A loading service holds its socket open and answers nothing, so the probe has its own limit.
    times = "--interval=30s --timeout=5s --start-period=15m --retries=3"
    return f"HEALTHCHECK {times} CMD {json.dumps(['python', '-c', PROBE])}"


def _label(pair: tuple[str, str]) -> str:
    return f"LABEL {pair[0]}={json.dumps(pair[1])}"


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
