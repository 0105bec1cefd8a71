"""The compose file and the systemd unit, read by the programs that will read them."""

import os
import subprocess
from pathlib import Path

import pytest
import yaml

from image.build import PROJECT

DEPLOY = PROJECT / "deploy"


@pytest.fixture(autouse=True)
def tools(scratch: Path) -> None:
    """The tools that the session installs."""


def test_docker_compose_reads_the_compose_file() -> None:
    done = _compose(IMAGE="semif-bento:1", HF_CACHE="/srv/huggingface", GPU="3")
    assert done.returncode == 0, done.stderr
    service = yaml.safe_load(done.stdout)["services"]["semif"]
    (device,) = service["deploy"]["resources"]["reservations"]["devices"]
    assert device["device_ids"] == ["3"]
    assert service["volumes"] == ["/srv/huggingface:/var/cache/huggingface:ro"]


@pytest.mark.parametrize("missing", ["IMAGE", "HF_CACHE"])
def test_docker_compose_asks_for_what_the_operator_must_name(missing: str) -> None:
    given = {"IMAGE": "semif-bento:1", "HF_CACHE": "/srv/huggingface"}
    given.pop(missing)
    done = _compose(**given)
    assert done.returncode != 0
    assert "name the" in done.stderr


def test_systemd_reads_the_unit_without_a_complaint() -> None:
    command = ["systemd-analyze", "verify", "--man=no", str(DEPLOY / "semif-bento.service")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def _compose(**environ: str) -> "subprocess.CompletedProcess[str]":
    command = ["docker-compose", "--file", str(DEPLOY / "compose.yaml"), "config"]
    kept = {"PATH": os.environ["PATH"]}
    return subprocess.run(command, env=kept | environ, capture_output=True, text=True)
