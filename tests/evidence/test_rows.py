"""Rows: what is malformed is named by line and stops nothing else; the bundled set is sound."""

import json
from collections import Counter

import pytest
from samples import make_row

from semif_bento.engine.registry import KINDS
from semif_bento.errors import EvidenceError
from semif_bento.evidence.rows import bundled_rows, choose_rows, read_rows, typed_rows
from semif_bento.questions import Answerable, Question

GOOD = {
    "id": "a",
    "state": "It rains.",
    "question": "Does it rain?",
    "options": [{"id": "y", "description": "Yes"}, {"id": "n", "description": "No"}],
    "answer": "y",
}


def write(path, *rows):
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_row_is_read_with_its_label_group_and_tags(tmp_path):
    file = write(tmp_path / "rows", {**GOOD, "group": "rain", "tags": {"language": "en"}})
    [row] = read_rows(file, labelled=True).rows
    assert (row.answer, row.answer_index, row.group, row.tags) == (
        "y",
        0,
        "rain",
        {"language": "en"},
    )
    assert row.request().decisions == (row.decision,)


@pytest.mark.parametrize(
    ("change", "row_error"),
    [
        ({"options": GOOD["options"][:1]}, "`options` must hold 2 or more."),
        ({"answer": "z"}, "`answer` must be the id of one of the options."),
        ({"answer": ["y"]}, "`answer` must be the id of one of the options."),
        ({"group": ""}, "`group` must be a nonempty string."),
        ({"tags": {"a": 1}}, "`tags` must be an object of strings."),
        ({"workload": "w"}, "`workload` does not belong to a row."),
        ({"extra": 1}, "The top level holds a key that is not known here."),
        ({"state": ""}, "`state` must be a nonempty string, object or array."),
    ],
)
def test_a_malformed_row_is_named_by_line_and_the_others_are_read(tmp_path, change, row_error):
    file = write(tmp_path / "rows", GOOD, {**GOOD, "id": "b", **change}, {**GOOD, "id": "c"})
    found = read_rows(file, labelled=True)
    assert [row.decision.id for row in found.rows] == ["a", "c"]
    assert found.row_errors == (f"line 2: {row_error}",)


@pytest.mark.parametrize("line", ["{", "[1]", '{"id": "b", "id": "b"}', '"text"', "NaN"])
def test_a_line_that_is_no_object_of_strict_json_is_named(tmp_path, line):
    found = read_rows(write(tmp_path / "rows", line, "", GOOD), labelled=True)
    assert len(found.rows) == 1
    assert found.row_errors[0].startswith("line 1: ")


def test_an_id_that_stood_before_is_named(tmp_path):
    found = read_rows(write(tmp_path / "rows", GOOD, GOOD), labelled=True)
    assert found.row_errors == ("line 2: `id` stands on an earlier line too.",)


def test_a_row_without_a_label_is_malformed_only_where_labels_are_needed(tmp_path):
    unlabelled = {key: value for key, value in GOOD.items() if key != "answer"}
    file = write(tmp_path / "rows", GOOD, {**unlabelled, "id": "b"})
    assert read_rows(file, labelled=True).row_errors == ("line 2: `answer` is missing.",)
    assert read_rows(file, labelled=False).row_errors == ()


def test_rows_without_a_group_are_groups_of_their_own(tmp_path):
    found = read_rows(write(tmp_path / "rows", GOOD, {**GOOD, "id": "b"}), labelled=True)
    assert len({row.group for row in found.rows}) == 2


def test_a_file_without_a_good_row_and_one_that_is_not_there_end_with_one_sentence(tmp_path):
    with pytest.raises(EvidenceError, match=r"no row that can be scored \(line 1: "):
        read_rows(write(tmp_path / "rows", "{"), labelled=True)
    with pytest.raises(EvidenceError, match=r"cannot be read: No such file"):
        read_rows(tmp_path / "none", labelled=True)


def test_the_hash_of_a_row_is_of_what_is_asked_alone(tmp_path):
    changed = {**GOOD, "options": GOOD["options"][::-1]}
    rows = (GOOD, {**GOOD, "id": "b", "answer": "n"}, {**changed, "id": "c"})
    first, same, other = read_rows(write(tmp_path / "rows", *rows), labelled=True).rows
    assert first.sha256 == same.sha256 != other.sha256


def test_the_bundled_decisions_are_all_good_distinct_and_many():
    found = read_rows(bundled_rows(), labelled=True)
    assert found.row_errors == ()
    assert len(found.rows) >= 60
    assert len({row.sha256 for row in found.rows}) == len(found.rows)


def test_the_bundled_decisions_cover_kinds_languages_and_shapes():
    tags = [row.tags for row in read_rows(bundled_rows(), labelled=True).rows]
    assert {tag["kind"] for tag in tags} == {"evidence", "rules", "routing"}
    assert {tag["language"] for tag in tags} == {"en", "de", "fr", "ja"}
    assert {tag["shape"] for tag in tags} == {"short", "long", "structured", "transcript"}
    assert min(Counter(tag["language"] for tag in tags).values()) >= 9


def test_the_bundled_right_options_stand_at_every_letter_about_as_often():
    rows = read_rows(bundled_rows(), labelled=True).rows
    for count in (2, 3, 4):
        places = Counter(row.answer_index for row in rows if len(row.decision.options) == count)
        assert set(places) == set(range(count))
        assert max(places.values()) - min(places.values()) <= 1


def test_bundled_rows_of_one_group_share_their_state_and_groups_have_states_of_their_own():
    rows = read_rows(bundled_rows(), labelled=True).rows
    states = {(row.group, json.dumps(row.state)) for row in rows}
    assert len(states) == len({group for group, _ in states}) == len({s for _, s in states})


@pytest.mark.parametrize(
    ("wanted", "device", "count"),
    [(None, "cuda:0", 40), (None, "cpu", 16), (8, "cuda:0", 8), (100, "cpu", 40)],
)
def test_a_sample_is_spread_over_the_file(wanted, device, count):
    rows = [make_row(index) for index in range(40)]
    chosen = choose_rows(rows, wanted, device)
    lines = [row.line for row in chosen]
    assert len(lines) == count
    assert lines == sorted(set(lines))
    assert lines[0] == 1
    assert lines[-1] > 40 - 40 // count - 1


TYPED = {
    "id": "t",
    "state": "It rains.",
    "kind": "yes_no",
    "question": "Does it rain?",
    "options": [{"id": "true", "description": ""}, {"id": "false", "description": ""}],
    "answer": "true",
}
LEVELS = [{"id": str(level), "description": f"level {level}"} for level in range(3)]


def test_a_label_is_read_and_kept(tmp_path):
    options = [{**GOOD["options"][0], "label": "certainly"}, GOOD["options"][1]]
    [row] = read_rows(write(tmp_path / "rows", {**GOOD, "options": options}), labelled=True).rows
    assert [option.label for option in row.decision.options] == ["certainly", None]
    [bare] = read_rows(write(tmp_path / "bare", GOOD), labelled=True).rows
    assert row.sha256 != bare.sha256


def test_a_typed_question_is_worded_as_the_protocols_word_it(tmp_path):
    [row] = read_rows(write(tmp_path / "rows", TYPED), labelled=True).rows
    sent = (Answerable("true", "yes"), Answerable("false", "no"))
    for kind in KINDS.values():
        question = Question("t", "yes_no", "Does it rain?", sent)
        assert row.word(kind).decision == kind.word(question)
        assert row.word(kind).answer_index == 0


def test_a_decision_of_ones_own_options_is_worded_by_its_caller(tmp_path):
    [row] = read_rows(write(tmp_path / "rows", {**GOOD, "kind": "options"}), labelled=True).rows
    assert all(row.word(kind) == row for kind in KINDS.values())


@pytest.mark.parametrize(
    ("change", "row_error"),
    [
        ({"kind": ["choice"]}, "`kind` must be one of options, yes_no, choice, levels."),
        ({"kind": "noul"}, "`kind` must be one of options, yes_no, choice, levels."),
        (
            {"options": TYPED["options"][::-1]},
            "`options` of a yes_no must have the ids true and false, in order.",
        ),
        (
            {"kind": "levels", "options": LEVELS[::-1], "answer": "1"},
            "`options` of levels must have the ids 0, 1, and so on, in order.",
        ),
        (
            {"kind": "choice", "options": [LEVELS[0], LEVELS[0]], "answer": "0"},
            "`options` must have ids that differ from each other.",
        ),
        (
            {"kind": "choice", "options": LEVELS[:1], "answer": "0"},
            "`options` must hold 2 or more.",
        ),
        ({"engine": "nli"}, "`engine` does not belong to a row."),
    ],
)
def test_a_malformed_typed_question_is_named_by_line(tmp_path, change, row_error):
    file = write(tmp_path / "rows", TYPED, {**TYPED, "id": "b", **change})
    found = read_rows(file, labelled=True)
    assert len(found.rows) == 1
    assert found.row_errors == (f"line 2: {row_error}",)


def test_the_typed_questions_that_ship_are_whole_and_of_every_kind():
    file = read_rows(typed_rows(), labelled=True)
    assert file.row_errors == ()
    kinds = Counter(row.decision.kind for row in file.rows)
    assert len(file.rows) == 215
    assert set(kinds) == {"yes_no", "choice", "levels"}
    assert min(kinds.values()) >= 30
    yes = Counter(row.answer for row in file.rows if row.decision.kind == "yes_no")
    assert 0.4 <= yes["true"] / kinds["yes_no"] <= 0.6
