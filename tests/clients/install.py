"""Install clients of other services into an environment of their own, and what the tests need.

    python tests/clients/install.py build/clients

The clients are pinned: their own types say what the service has to answer. What they need is not,
as it is not in an environment that somebody installs them into.
"""

import subprocess
import sys
from pathlib import Path

CLIENTS = (
    "openai==3.63.0",
    "langchain-openai==1.8.1",
    "typesafe-sdk==0.7.5",
    "jevcompat==0.1.1",
    "mcp==2.3.0",
)
TESTS = ("httpx>=0.28", "psutil", "pytest>=9", "pytest-asyncio>=1.5")


def main(directory: Path) -> None:
    python = directory / "env" / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", directory / "env"], check=True)
    pip = [python, "-m", "pip", "--disable-pip-version-check", "--no-input", "--quiet"]
    subprocess.run([*pip, "install", *CLIENTS, *TESTS], check=True)
    (directory / ".ready").touch()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
