"""What the commands make of a remote backend."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from models.byte_qwen import byte_tokenizer
from scripted_engine import KEY, MODEL, ScriptedEngine

ROOT = Path(__file__).parents[2]


@pytest.fixture
def engine():
    started = ScriptedEngine("vllm", byte_tokenizer()).start()
    started.key = KEY
    yield started
    started.stop()


def run(engine: ScriptedEngine, directory: Path, *arguments: str):
    kept = {k: v for k, v in os.environ.items() if not k.startswith("SEMIF_")}
    given = {
        "SEMIF_API_TOKEN": "t" * 40,
        "SEMIF_MODEL": str(directory),
        "SEMIF_REVISION": "r1",
        "SEMIF_BACKEND": "vllm",
        "SEMIF_BACKEND_URLS": engine.url,
        "SEMIF_BACKEND_MODEL": MODEL,
        "SEMIF_BACKEND_KEY": KEY,
        "SEMIF_MAX_TOKENS": "2048",
    }
    return subprocess.run(
        [sys.executable, "-m", "semif_bento.cli.main", *arguments],
        cwd=ROOT, env={**kept, **given}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_doctor_proves_the_servers_and_hides_the_key(engine, tokenizer_directory):
    done = run(engine, tokenizer_directory, "doctor", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert KEY not in done.stdout + done.stderr
    facts = json.loads(done.stdout)["facts"]
    assert facts["servers"] == {
        "servers": [engine.name],
        "calls_at_once": 16,
        "letters": f"vllm 9.9.9 on 1 server, serving {MODEL}",
        "letters_most_options": 26,
    }
    assert "device" not in facts


def test_doctor_tells_why_a_server_would_stop_the_start(engine, tokenizer_directory):
    engine.models = [{"id": "another"}]
    done = run(engine, tokenizer_directory, "doctor")
    assert done.returncode == 1
    assert f"servers: {engine.name} serves another, not {MODEL}" in done.stdout


def test_accept_without_a_service_says_that_there_is_no_model_here(engine, tokenizer_directory):
    done = run(engine, tokenizer_directory, "accept")
    assert done.returncode == 1
    assert "measure the running service with --url" in done.stderr
    assert engine.calls == []
