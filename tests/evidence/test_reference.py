"""A reference is SemIf's own answers: made once for each row and model, read line by line."""

import dataclasses
import importlib
import json

import pytest
from samples import MODEL, ToldScorer, make_row, make_target

from semif_bento.errors import EvidenceError
from semif_bento.evidence import reference
from semif_bento.evidence.target import LoadedModel

ROWS = [make_row(index) for index in range(5)]


@pytest.fixture
def asked(monkeypatch):
    """The ids that SemIf's scorer was asked; a stand-in answers with the row's own logits."""
    direct = importlib.import_module("fastjev._runtime.direct")
    ids: list[str] = []

    def score(model, tokenizer, row, metadata, max_tokens):
        ids.append(row["id"])
        if row["id"] == "row3":
            raise ValueError("Row row3: 900 input tokens exceed limit 600; no truncation allowed")
        if row["id"] == model:
            raise RuntimeError("a driver's own words")
        options = [option["id"] for option in row["options"]]
        return {
            "id": row["id"],
            "option_ids": options,
            "option_logits": [1.0, 2.0],
            "input_tokens": 7,
            "prompt_sha256": "ab" * 32,
            "model": metadata,
        }

    monkeypatch.setattr(direct, "score", score)
    return ids


def make(path, rows=ROWS, fails_at=None, **identity):
    scorer = ToldScorer(identity=dataclasses.replace(MODEL, **identity))
    target = dataclasses.replace(make_target(scorer), loaded=LoadedModel(fails_at, None))
    return reference.make_reference(target, rows, path)


def test_it_is_made_for_every_row_within_the_limit_and_reads_back_the_same(asked, tmp_path):
    path = tmp_path / "folder" / "reference.jsonl"
    found = make(path)
    assert sorted(found) == ["row0", "row1", "row2", "row4"]
    assert reference.read_reference(path) == found


def test_what_an_ended_run_made_is_not_made_again(asked, tmp_path):
    path = tmp_path / "reference.jsonl"
    with pytest.raises(EvidenceError, match=r"failed on 'row2': RuntimeError\."):
        make(path, fails_at="row2")
    path.write_text(path.read_text() + '{"id": "row2", "opti')
    asked.clear()
    assert len(make(path)) == 4
    assert asked == ["row2", "row3", "row4"]
    assert len(path.read_text().splitlines()) == 4


@pytest.mark.parametrize(
    "change", [{"revision": "r2"}, {"dtype": "float16"}, {"torch_version": "9"}]
)
def test_answers_of_another_model_or_library_are_made_again(asked, tmp_path, change):
    path = tmp_path / "reference.jsonl"
    make(path)
    asked.clear()
    make(path, **change)
    assert len(asked) == len(ROWS)


def test_a_row_that_was_changed_is_made_again(asked, tmp_path):
    path = tmp_path / "reference.jsonl"
    make(path)
    asked.clear()
    make(path, [make_row(0, state="another"), *ROWS[1:3]])
    assert asked == ["row0"]


@pytest.mark.parametrize(
    "change", [{"option_logits": [1.0]}, {"option_logits": [1.0, float("nan")]}, {"id": None}]
)
def test_a_line_that_is_no_result_is_named(tmp_path, change):
    good = {
        "id": "a",
        "option_ids": ["y", "n"],
        "option_logits": [1.0, 2.0],
        "input_tokens": 7,
        "prompt_sha256": "ab",
    }
    bad = {key: value for key, value in {**good, **change}.items() if value is not None}
    path = tmp_path / "reference.jsonl"
    path.write_text(f"{json.dumps(good)}\n\n{json.dumps(bad)}\n")
    with pytest.raises(EvidenceError, match="line 3 is not a result of SemIf"):
        reference.read_reference(path)


def test_without_a_maker_or_away_from_the_model_it_is_not_begun(monkeypatch):
    reference.require_maker(is_local=True)
    with pytest.raises(EvidenceError, match="Through a service a reference is needed"):
        reference.require_maker(is_local=False)
    monkeypatch.setattr(reference, "MAKER", "no_such_package")
    with pytest.raises(EvidenceError, match="no_such_package is needed"):
        reference.require_maker(is_local=True)
