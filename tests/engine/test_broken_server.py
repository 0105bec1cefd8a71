"""A real server on a broken model ends by itself, with one clear line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from models.byte_qwen import build_byte_qwen
from models.loaded import save
from ports import free_port
from safetensors.torch import load_file, save_file

ROOT = Path(__file__).parents[2]
NORM = "model.norm.weight"


def _without_a_weight(weights):
    del weights[NORM]


def _with_a_nan(weights):
    weights[NORM].fill_(float("nan"))


BROKEN = {
    _without_a_weight: f"The checkpoint did not load whole: 1 missing ({NORM}).",
    _with_a_nan: (
        "The warm-up decision does not score. The model gave a logit that is not a finite number."
    ),
}


def _start(model, home):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SEMIF_", "BENTOML_"))}
    given = {
        "SEMIF_API_TOKEN": "t" * 40,
        "SEMIF_MODEL": str(model),
        "SEMIF_REVISION": "v1",
        "SEMIF_DEVICE": "cpu",
        "BENTOML_HOME": str(home),
        "BENTOML_DO_NOT_TRACK": "True",
    }
    command = [sys.executable, "-m", "bentoml", "serve", "service:SemIf", "--host", "127.0.0.1"]
    return subprocess.Popen(
        [*command, "--port", str(free_port())],
        cwd=ROOT,
        env=kept | given,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    """A server for each damage, at once: BentoML takes ten seconds to see that one has ended."""
    servers = {}
    try:
        for damage in BROKEN:
            home = tmp_path_factory.mktemp("broken")
            directory = save(build_byte_qwen("bfloat16"), home / "model")
            weights = load_file(directory / "model.safetensors")
            damage(weights)
            save_file(weights, directory / "model.safetensors", metadata={"format": "pt"})
            servers[damage] = _start(directory, home)
        yield servers
    finally:
        for server in servers.values():
            server.kill()
            server.communicate()


@pytest.mark.parametrize(("damage", "line"), BROKEN.items())
def test_a_server_on_broken_weights_ends_non_zero_with_one_clear_line(started, damage, line):
    output, _ = started[damage].communicate(timeout=180)
    assert started[damage].returncode == 1
    said = [text for text in output.splitlines() if "cannot start" in text]
    assert said == [f"semif-bento cannot start: {line}"]
    assert "Traceback" not in output
