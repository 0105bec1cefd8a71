"""Calibration: the table's rules, and a view that never moves the winner."""

import json

import pytest

from semif_bento.calibration import CalibrationTable, load_calibration
from semif_bento.errors import InvalidRequest, StartupError
from semif_bento.protocol import softmax

TABLE = CalibrationTable({"b": 2.0, "a": 0.5})


def test_no_path_is_an_empty_table():
    table = load_calibration(None)
    assert table.workloads == []
    with pytest.raises(InvalidRequest, match="known workloads: none"):
        table.require("a")


def test_a_table_is_read_and_its_names_sorted(tmp_path):
    file = tmp_path / "table.json"
    file.write_text('{"b": 2, "a": 0.5}')
    table = load_calibration(file)
    assert table.workloads == ["a", "b"]
    assert table.temperatures == {"b": 2.0, "a": 0.5}


@pytest.mark.parametrize(
    "value", [0, -1, "2", True, None, [1], 10**400, float("inf"), float("nan")]
)
def test_a_temperature_that_is_no_finite_number_above_0_is_refused_by_name(tmp_path, value):
    file = tmp_path / "table.json"
    file.write_text(json.dumps({"good": 1.0, "bad": value}))
    with pytest.raises(StartupError, match="SEMIF_CALIBRATION: the temperature of 'bad'"):
        load_calibration(file)


@pytest.mark.parametrize("text", ["", "{", "[1]", "1", '{"": 1}', "\ufeff{}"])
def test_a_file_that_is_no_table_is_refused(tmp_path, text):
    file = tmp_path / "table.json"
    file.write_text(text)
    with pytest.raises(StartupError, match="SEMIF_CALIBRATION"):
        load_calibration(file)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(StartupError, match="cannot be read"):
        load_calibration(tmp_path / "none.json")


def test_asking_for_nothing_is_always_fine():
    TABLE.require(None)


def test_an_unknown_workload_is_refused_by_listing_the_known_ones():
    with pytest.raises(InvalidRequest, match=r"unknown; known workloads: a, b\.$"):
        TABLE.view("secret", (1.0, 2.0))


@pytest.mark.parametrize("workload", ["a", "b"])
def test_a_view_is_the_softmax_at_the_temperature_and_keeps_the_winner(workload):
    logits = (3.0, -1.0, 2.9)
    view = TABLE.view(workload, logits)
    assert view.probabilities == softmax(logits, TABLE.temperatures[workload])
    assert sum(view.probabilities) == pytest.approx(1)
    assert max(view.probabilities) == view.probabilities[0]
