"""The three deployments as plain values: what each sets, and how each fences the container in."""

import re
import shlex
from pathlib import Path
from typing import Any

import yaml

from semif_bento.cli.environment import read_env_file

PROJECT = Path(__file__).parents[2]
DEPLOY = PROJECT / "deploy"
SETTINGS = read_env_file(PROJECT / "configs" / "qwen3.5-4b.env")


def compose() -> dict[str, Any]:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["semif"]


def podman_command() -> list[str]:
    """The ExecStart of the systemd unit, split into words."""
    text = (DEPLOY / "semif-bento.service").read_text().replace("\\\n", " ")
    (line,) = re.findall(r"(?m)^ExecStart=(.*)$", text)
    return shlex.split(line)


def kubernetes(file: str, kind: str) -> dict[str, Any]:
    documents = yaml.safe_load_all((DEPLOY / "kubernetes" / file).read_text())
    (found,) = [document for document in documents if document["kind"] == kind]
    return found


def pod() -> dict[str, Any]:
    return kubernetes("service.yaml", "Deployment")["spec"]["template"]["spec"]


def environments() -> dict[str, dict[str, str]]:
    """What each deployment gives the process, by the deployment's name."""
    pairs = [word.removeprefix("--env=") for word in podman_command() if word.startswith("--env=")]
    (container,) = pod()["containers"]
    return {
        "compose": SETTINGS | compose()["environment"],
        "systemd": SETTINGS | dict(pair.split("=", 1) for pair in pairs),
        "kubernetes": {entry["name"]: entry["value"] for entry in container["env"]},
    }
