"""What is too little to fit on is said; a table takes a workload whole or not at all."""

import dataclasses
import json

import pytest
from samples import MODEL, exact_answers, make_row, make_scored

from semif_bento.calibration import load_calibration
from semif_bento.errors import EvidenceError
from semif_bento.evidence import fitting
from semif_bento.evidence.temperature import evaluate

EVALUATION = evaluate(exact_answers(2.5, repeats=2), seed=0)
PROVENANCE = fitting.to_provenance(EVALUATION, exact_answers(2.5, repeats=2), MODEL, "ab" * 32)


def doubts(rows, logits):
    scored = make_scored(rows, logits)
    return fitting.find_doubts(scored, fitting.to_answers(scored))


def mixed(count, groups=None):
    rows = [
        make_row(n, answer=n % 2, group=f"g{n % groups}" if groups else f"g{n}")
        for n in range(count)
    ]
    return rows, [[1.0, 2.0] if n % 3 else [2.0, 1.0] for n in range(count)]


def test_enough_mixed_rows_raise_no_doubt():
    assert doubts(*mixed(60)) == []


def test_too_few_rows_and_too_few_groups_are_said():
    assert doubts(*mixed(30)) == ["Too few rows: 30, and 50 are the least."]
    assert doubts(*mixed(60, groups=7)) == ["Too few groups: 7, and 20 are the least."]


def test_fewer_groups_than_folds_end_it():
    with pytest.raises(EvidenceError, match="4 groups of rows are too few; 5 are the least"):
        doubts(*mixed(60, groups=4))


def test_one_class_one_place_and_no_wrong_answer_are_said():
    rows, _ = mixed(60)
    same = [dataclasses.replace(row, answer="o0") for row in rows]
    found = doubts(same, [[2.0, 1.0]] * 60)
    assert [each.split(":")[0] for each in found] == [
        "One class only",
        "One place only",
        "Every answer is right",
    ]


def test_a_temperature_at_its_bound_is_said():
    assert fitting.find_faults(EVALUATION) == []
    [fault] = fitting.find_faults(dataclasses.replace(EVALUATION, temperature=20.0))
    assert "ran to its bound (20; the range is 0.05 to 20)" in fault


def test_a_written_table_is_what_a_service_reads(tmp_path):
    path = tmp_path / "folder" / "table.json"
    fitting.write_table(path, "triage", 1.5, PROVENANCE)
    table = load_calibration(path)
    assert table.temperatures == {"triage": 1.5}
    assert table.provenances == {"triage": PROVENANCE}
    table.require_model(MODEL.source, MODEL.revision)


def test_the_same_fit_writes_the_same_bytes(tmp_path):
    for name in "ab":
        fitting.write_table(tmp_path / name, "w", EVALUATION.temperature, PROVENANCE)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_other_workloads_of_a_table_stay_and_the_same_one_is_replaced(tmp_path):
    path = tmp_path / "table.json"
    path.write_text('{"by hand": 2, "w": 9.0}')
    fitting.write_table(path, "w", 1.5, PROVENANCE)
    assert load_calibration(path).temperatures == {"by hand": 2.0, "w": 1.5}
    assert list(tmp_path.iterdir()) == [path]


def test_a_table_that_holds_a_workload_of_another_model_is_left_as_it_was(tmp_path):
    path = tmp_path / "table.json"
    other = dataclasses.replace(PROVENANCE, model_revision="r2")
    fitting.write_table(path, "theirs", 3.0, other)
    before = path.read_bytes()
    with pytest.raises(EvidenceError, match=r"'theirs' was fitted for scripted at r2"):
        fitting.write_table(path, "ours", 1.5, PROVENANCE)
    assert path.read_bytes() == before


def test_a_file_that_is_no_table_is_left_as_it_was(tmp_path):
    path = tmp_path / "table.json"
    path.write_text("[1]")
    with pytest.raises(EvidenceError, match="cannot take the workload"):
        fitting.write_table(path, "ours", 1.5, PROVENANCE)
    assert path.read_text() == "[1]"


def test_slices_count_right_answers_by_tag():
    rows = [make_row(n, tags={"language": "en" if n else "de"}) for n in range(3)]
    scored = make_scored(rows, [[2.0, 1.0], [2.0, 1.0], [1.0, 2.0]])
    found = fitting.find_slices(scored, fitting.to_answers(scored))
    assert found == (("language: de", 1, 1), ("language: en", 2, 1))


def test_provenance_holds_what_was_measured():
    text = json.dumps(dataclasses.asdict(PROVENANCE))
    assert PROVENANCE.ece_out_of_fold < PROVENANCE.ece_raw
    assert PROVENANCE.rows == len(exact_answers(2.5, repeats=2))
    assert json.loads(text)["engine"] == "letters"
