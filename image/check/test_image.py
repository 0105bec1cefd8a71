"""The image holds what it must and no more, keeps its layers, and serves inside a fence."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from image import host
from image.check.builds import Build, tracked_files
from image.check.conftest import TOKEN
from image.check.container import Container, podman

BEARER = {"Authorization": f"Bearer {TOKEN}"}
OPTIONS = [{"id": "y", "description": "Yes"}, {"id": "n", "description": "No"}]
DECISION = {"id": "d", "question": "Is it so?", "options": OPTIONS}
SOURCE = "home/bentoml/bento/src"
WEIGHTS = (".safetensors", ".gguf", ".onnx", ".pt", ".pth", ".bin")
CACHES = (
    "root/.cache/*",
    "home/*/.cache/*",
    "app/**/*.whl",
    "tmp/*",
    "var/cache/apt/archives/*.deb",
)
COMPILERS = ("gcc", "cc", "g++", "c++", "clang", "make", "ld")
END_LIMIT_S = 120


@pytest.fixture(scope="module")
def root(second: Build) -> Iterator[Path]:
    """The image's root file system."""
    created = podman("create", "--no-healthcheck", second.tag).strip()
    yield Path(podman("mount", created).strip())
    podman("umount", created)
    podman("rm", created)


@pytest.fixture(scope="module")
def description(second: Build) -> dict[str, Any]:
    return json.loads(podman("image", "inspect", second.tag))[0]


def test_a_version_bump_and_a_source_edit_leave_every_layer_but_the_last_two(
    first: Build, second: Build
) -> None:
    assert len(first.layers) == len(second.layers) > 4
    assert first.layers[:-2] == second.layers[:-2]
    assert first.layers[-2] != second.layers[-2]


def test_the_source_holds_the_service_and_its_package_alone(root: Path) -> None:
    source = root / SOURCE
    packed = {str(path.relative_to(source)) for path in source.rglob("*") if path.is_file()}
    package = {name for name in tracked_files() if name.startswith("semif_bento/")}
    assert packed == package | {"service.py", "LICENSE", "bentofile.yaml"}


def test_there_are_no_weights_caches_or_wheels_in_it(root: Path) -> None:
    large = [p for p in root.rglob("*") if p.suffix in WEIGHTS and p.lstat().st_size > 1 << 20]
    assert large == []
    assert [path for place in CACHES for path in root.glob(place)] == []


def test_there_is_no_compiler_in_it(root: Path) -> None:
    folders = ("usr/bin", "usr/local/bin", "app/.venv/bin")
    assert [p for f in folders for c in COMPILERS for p in (root / f).glob(c)] == []


def test_there_is_no_token_in_it(root: Path, description: dict[str, Any], second: Build) -> None:
    holding = [
        path
        for folder in ("home", "tmp", "root", "run")
        for path in (root / folder).rglob("*")
        if path.is_file() and not path.is_symlink() and TOKEN.encode() in path.read_bytes()
    ]
    assert holding == []
    assert TOKEN not in json.dumps(description) + _history(second)


def test_nothing_of_the_host_is_left_in_it(
    root: Path, description: dict[str, Any], second: Build
) -> None:
    assert not (root / "run" / "host").exists()
    said = json.dumps(description["Config"]) + _history(second)
    houses = {str(wheel.parent) for wheel in host.find_wheels()}
    certificates = {str(found) for found in (host.find_certificates(),) if found}
    assert [place for place in houses | certificates if place in said] == []


def test_it_runs_offline_as_its_own_user_and_says_what_it_is(description: dict[str, Any]) -> None:
    config = description["Config"]
    environ = dict(pair.split("=", 1) for pair in config["Env"])
    assert config["User"] == "bentoml"
    assert environ["HF_HUB_OFFLINE"] == "1"
    assert environ["BENTOML_DO_NOT_TRACK"] == "True"
    assert environ["BENTOML_CONTAINERIZED"] == "true"
    assert environ["OMP_WAIT_POLICY"] == "passive"
    assert not any(name.startswith("SEMIF_") for name in environ)
    assert config["Labels"]["org.opencontainers.image.version"] == "99.0.0"
    assert config["Labels"]["semif.protocol"] == "direct-options-v1"


def test_it_answers_from_inside_the_fence(container: Container) -> None:
    health = container.call("GET", "/health").json()
    assert (health["status"], health["version"]) == ("ok", "99.0.0")
    direct = container.call("POST", "/decide", json={**DECISION, "state": "So."}, headers=BEARER)
    assert direct.status_code == 200
    assert sum(direct.json()["probabilities"]) == pytest.approx(1)
    body = {"state": "So.", "decisions": [DECISION, {**DECISION, "id": "e"}]}
    shared = container.call("POST", "/decide/shared", json=body, headers=BEARER)
    assert [result["id"] for result in shared.json()["results"]] == ["d", "e"]


def test_it_refuses_a_call_without_the_token(container: Container) -> None:
    refused = container.call("POST", "/decide", json={**DECISION, "state": "So."})
    assert refused.status_code == 401
    assert refused.json()["error"]["code"] == "unauthorized"


def test_the_fence_holds(container: Container) -> None:
    assert container.run("id", "-u").stdout.strip() == "1034"
    capabilities = container.run("grep", "CapEff", "/proc/self/status").stdout.split()[1]
    assert int(capabilities, 16) == 0
    assert container.run("touch", "/home/bentoml/x").returncode != 0
    interfaces = container.run("python", "-c", "import socket; print(socket.if_nameindex())")
    assert re.findall(r"'(\w+)'", interfaces.stdout) == ["lo"]


def test_its_health_check_passes_while_it_serves(
    container: Container, description: dict[str, Any]
) -> None:
    kind, *command = description["Healthcheck"]["Test"]
    assert kind == "CMD"
    assert container.run(*command).returncode == 0


def test_sigterm_lets_the_running_call_answer(container: Container) -> None:
    state = " ".join(f"Parcel {n} was weighed and sent." for n in range(60))
    body = {"state": state, "decisions": [{**DECISION, "id": str(n)} for n in range(24)]}
    begun = _calls_begun(container)
    call = container.begin_call("POST", "/decide/shared", json=body, headers=BEARER)
    container.wait_until(lambda: _calls_begun(container) > begun, END_LIMIT_S)
    assert not call.done()
    stopped_s = time.monotonic()
    code = container.stop(grace_s=END_LIMIT_S)
    answer = call.result()
    assert answer.status_code == 200, answer.text
    assert len(answer.json()["results"]) == 24
    assert code == 0, container.log()
    assert time.monotonic() - stopped_s < END_LIMIT_S


@pytest.mark.parametrize(
    ("environ", "line"),
    [
        (
            {"SEMIF_API_TOKEN": "short"},
            "semif-bento cannot start: SEMIF_API_TOKEN must hold at least 32 characters.",
        ),
        (
            {"SEMIF_API_TOKEN": TOKEN},
            r"semif-bento cannot start: Qwen/Qwen3.5-4B at [0-9a-f]{40} is not in the Hugging Face "
            "cache; `semif-bento pull` fills it.",
        ),
    ],
    ids=["short token", "no weights"],
)
def test_a_start_that_must_not_succeed_ends_with_one_clear_line(
    second: Build, environ: dict[str, str], line: str
) -> None:
    container = Container(second.tag, {**environ, "SEMIF_DEVICE": "cpu"})
    try:
        code = container.wait_end(END_LIMIT_S)
        log = container.log()
    finally:
        container.remove()
    assert code == 1
    assert len(re.findall(f"(?m)^{line}$", log)) == 1, log
    assert "Traceback" not in log


def _calls_begun(container: Container) -> float:
    lines = container.call("GET", "/metrics", headers=BEARER).text.splitlines()
    return sum(float(x.split()[-1]) for x in lines if x.startswith("semif_queue_seconds_count"))


def _history(build: Build) -> str:
    return podman("history", "--no-trunc", "--format", "json", build.tag)
