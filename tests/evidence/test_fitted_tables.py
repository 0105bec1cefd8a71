"""A fitted table binds to its model, prompt version and engine; a malformed one is refused."""

import dataclasses
import json

import pytest

from semif_bento.calibration import Provenance, load_calibration
from semif_bento.errors import StartupError
from semif_bento.protocol import PROMPT_VERSION

FITTED = Provenance(
    engine="letters",
    model_source="a model",
    model_revision="r1",
    dtype="bfloat16",
    prompt_version=PROMPT_VERSION,
    data_sha256="ab" * 32,
    rows=144,
    groups=36,
    accuracy=0.8,
    nll_raw=0.7,
    nll_out_of_fold=0.6,
    brier_raw=0.3,
    brier_out_of_fold=0.28,
    ece_raw=0.068,
    ece_out_of_fold=0.038,
)


def write(path, **entries):
    path.write_text(json.dumps(entries))
    return path


def entry(temperature=1.23, **changes):
    return {
        "temperature": temperature,
        "provenance": {**dataclasses.asdict(FITTED), **changes},
    }


def test_fitted_and_handwritten_workloads_stand_in_one_table(tmp_path):
    table = load_calibration(write(tmp_path / "t", fitted=entry(), plain=2))
    assert table.workloads == ["fitted", "plain"]
    assert table.provenances == {"fitted": FITTED}
    assert table.view("fitted", (1.23, 0.0)).temperature == 1.23


def test_a_table_that_was_fitted_under_the_engines_former_name_still_loads(tmp_path):
    table = load_calibration(write(tmp_path / "t", fitted=entry(engine="letter")))
    assert table.provenances == {"fitted": FITTED}


def test_a_handwritten_table_binds_to_no_model(tmp_path):
    load_calibration(write(tmp_path / "t", plain=2)).require_model("any", "r9")


@pytest.mark.parametrize(("source", "revision"), [("a model", "r2"), ("another", "r1")])
def test_another_model_is_refused_by_naming_the_workload_and_both_models(
    tmp_path, source, revision
):
    table = load_calibration(write(tmp_path / "t", fitted=entry(), plain=2))
    table.require_model("a model", "r1")
    expected = f"'fitted' was fitted for a model at r1, not for {source} at {revision}"
    with pytest.raises(StartupError, match=expected):
        table.require_model(source, revision)


@pytest.mark.parametrize(
    ("name", "value"), [("prompt_version", "direct-options-v2"), ("engine", "nli")]
)
def test_another_prompt_version_or_engine_is_refused(tmp_path, name, value):
    file = write(tmp_path / "t", fitted=entry(**{name: value}))
    with pytest.raises(StartupError, match=f"'fitted' was fitted for {name} '{value}'"):
        load_calibration(file)


@pytest.mark.parametrize(
    "value",
    [
        {"temperature": 1.2},
        {"provenance": dataclasses.asdict(FITTED)},
        {**entry(), "note": "x"},
        entry(extra=1),
        entry(rows=True),
        entry(rows="144"),
        entry(ece_raw=None),
        {"temperature": 1.2, "provenance": 7},
    ],
)
def test_a_malformed_provenance_is_refused_by_workload(tmp_path, value):
    with pytest.raises(StartupError, match="'fitted' must hold `temperature` and a whole"):
        load_calibration(write(tmp_path / "t", fitted=value))


def test_the_temperature_of_a_fitted_workload_has_the_same_rules(tmp_path):
    with pytest.raises(StartupError, match="temperature of 'fitted' must be a finite number"):
        load_calibration(write(tmp_path / "t", fitted=entry(temperature=0)))


@pytest.mark.parametrize(
    "text", ['{"a": 1, "a": 2}', '{"a": {"temperature": 1, "temperature": 1}}']
)
def test_a_key_that_stands_twice_is_refused(tmp_path, text):
    file = tmp_path / "t"
    file.write_text(text)
    with pytest.raises(StartupError, match=r"SEMIF_CALIBRATION holds '\w+' twice"):
        load_calibration(file)
