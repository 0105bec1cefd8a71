"""Tables of the two engines at a real server's start: each variable takes its own alone."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from nli_bodies import NO_LETTERS

FITTED = {
    "engine": "nli",
    "model_source": "scripted-nli",
    "model_revision": "r1",
    "dtype": "float32",
    "prompt_version": "nli-hyp-v1",
    "data_sha256": "ab" * 32,
    "rows": 144,
    "groups": 36,
    "accuracy": 0.8,
    "nll_raw": 0.7,
    "nll_out_of_fold": 0.6,
    "brier_raw": 0.3,
    "brier_out_of_fold": 0.28,
    "ece_raw": 0.068,
    "ece_out_of_fold": 0.038,
}
LETTER = {
    **FITTED,
    "engine": "letters",
    "model_source": "scripted",
    "prompt_version": "direct-options-v1",
}


def write(path: Path, provenance: dict[str, Any]) -> str:
    path.write_text(json.dumps({"w": {"temperature": 1.5, "provenance": provenance}}))
    return str(path)


def refusal(server) -> str:
    assert server.process.wait(60) == 1
    [line] = [line for line in server.log().splitlines() if "cannot start" in line]
    assert "Traceback" not in server.log()
    return line.removeprefix("semif-bento cannot start: ")


@pytest.mark.parametrize(
    ("variable", "provenance", "message"),
    [
        ("SEMIF_NLI_CALIBRATION", LETTER, "'w' was fitted for engine 'letters', this is 'nli'."),
        ("SEMIF_CALIBRATION", FITTED, "'w' was fitted for engine 'nli', this is 'letters'."),
        (
            "SEMIF_NLI_CALIBRATION",
            {**FITTED, "prompt_version": "nli-hyp-v0"},
            "'w' was fitted for prompt_version 'nli-hyp-v0', this is 'nli-hyp-v1'.",
        ),
        (
            "SEMIF_NLI_CALIBRATION",
            {**FITTED, "model_revision": "r2"},
            "'w' was fitted for scripted-nli at r2, not for scripted-nli at r1.",
        ),
    ],
)
def test_a_table_that_is_not_this_engines_ends_the_start_and_names_the_variable(
    launch, tmp_path, variable, provenance, message
):
    line = refusal(launch(**{variable: write(tmp_path / "t", provenance)}))
    assert line == f"{variable}: {message}"


@pytest.mark.parametrize("text", ["[]", "{", '{"w": 0}', '{"w": 1, "w": 2}'])
def test_a_malformed_table_ends_the_start_and_names_the_variable(launch, tmp_path, text):
    (tmp_path / "t").write_text(text)
    line = refusal(launch(SEMIF_NLI_CALIBRATION=str(tmp_path / "t")))
    assert line.startswith("SEMIF_NLI_CALIBRATION")


def test_a_table_of_an_absent_engine_ends_the_start(launch, tmp_path):
    table = write(tmp_path / "t", LETTER)
    assert refusal(launch(**NO_LETTERS, SEMIF_CALIBRATION=table)).startswith("SEMIF_CALIBRATION is")
    table = write(tmp_path / "t", FITTED)
    nothing = {"SEMIF_NLI_MODEL": "", "SEMIF_NLI_REVISION": ""}
    line = refusal(launch(**nothing, SEMIF_NLI_CALIBRATION=table))
    assert line == "SEMIF_NLI_CALIBRATION is set, SEMIF_NLI_MODEL is not."


def test_both_tables_stand_in_health_each_with_its_provenance(launch, tmp_path):
    server = launch(
        SEMIF_NLI_CALIBRATION=write(tmp_path / "nli", FITTED),
        SEMIF_CALIBRATION=write(tmp_path / "letter", LETTER),
    ).wait_until_ready()
    health = httpx.get(f"{server.url}/health").json()
    assert health["calibration"]["w"] == {"temperature": 1.5, "provenance": LETTER}
    assert health["nli"]["calibration"]["w"] == {"temperature": 1.5, "provenance": FITTED}
