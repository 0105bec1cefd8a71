import hashlib
import json
from array import array
from pathlib import Path

import pytest

from semif_bento.bench.classify.inputs import (
    FrozenInputs,
    PairFile,
    freeze,
    read_pairs,
    write_inputs,
)
from semif_bento.bench.classify.synthetic import make_pairs
from semif_bento.bench.classify.target import Target
from semif_bento.engine.nli.encoding import PairEncoder
from semif_bento.entailment import Tokens
from semif_bento.errors import StartupError

PAIR = {"id": "a", "premise": "It rains.", "hypothesis": "It is wet."}


def lines_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def write_lines(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_ids_are_those_of_the_whole_text_and_hashes_are_over_them(
    target: Target, inputs: FrozenInputs
) -> None:
    row = inputs.rows[-1]
    text = "Premise: It rained.\nHypothesis: The street is wet."
    assert row.ids == tuple(target.checkpoint.tokenizer(text).input_ids)
    assert row.tokens_sha256 == hashlib.sha256(array("I", row.ids).tobytes()).hexdigest()
    everything = array("I", [token for one in inputs.rows for token in one.ids])
    assert inputs.tokens_sha256 == hashlib.sha256(everything.tobytes()).hexdigest()


def test_the_hash_of_a_row_is_the_one_that_the_classifier_answers_with(
    target: Target, inputs: FrozenInputs
) -> None:
    outcome = target.classifier.classify([Tokens(row.ids) for row in inputs.rows])

    assert [row.tokens_sha256 for row in outcome.rows] == [row.tokens_sha256 for row in inputs.rows]


def test_what_is_written_is_read_back_and_freezes_the_same(
    target: Target, inputs: FrozenInputs, tmp_path: Path
) -> None:
    write_inputs(tmp_path / "pairs.jsonl", inputs)

    again = freeze(read_pairs(tmp_path / "pairs.jsonl"), target.encoder)

    assert (again.tokens_sha256, again.texts_sha256) == (inputs.tokens_sha256, inputs.texts_sha256)
    assert [row.ids for row in again.rows] == [row.ids for row in inputs.rows]
    assert again.groups() == {"parcels": [0, 1, 2], "pumps": [3, 4, 5]}


def test_another_template_is_refused(target: Target, inputs: FrozenInputs, tmp_path: Path) -> None:
    write_inputs(tmp_path / "pairs.jsonl", inputs)
    other = "Text: {premise}\nClaim: {hypothesis}"
    encoder = PairEncoder(target.checkpoint.tokenizer, other, 512, 49152)

    with pytest.raises(StartupError, match="'parcels-yes' was frozen with another tokenizer"):
        freeze(read_pairs(tmp_path / "pairs.jsonl"), encoder)


def test_a_text_that_was_changed_is_refused_by_name(
    target: Target, inputs: FrozenInputs, tmp_path: Path
) -> None:
    path = tmp_path / "pairs.jsonl"
    write_inputs(path, inputs)
    head, *rows = lines_of(path)
    rows[-1]["hypothesis"] += " Very."

    with pytest.raises(StartupError, match="'single' was frozen with another"):
        freeze(read_pairs(write_lines(path, head, *rows)), target.encoder)


def test_rows_that_were_lost_are_missed(inputs: FrozenInputs, tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    write_inputs(path, inputs)

    with pytest.raises(StartupError, match="holds 6 pairs of 7"):
        read_pairs(write_lines(path, *lines_of(path)[:-1]))


def test_rows_in_another_order_are_not_the_frozen_ones(
    target: Target, inputs: FrozenInputs, tmp_path: Path
) -> None:
    path = tmp_path / "pairs.jsonl"
    write_inputs(path, inputs)
    head, *rows = lines_of(path)

    with pytest.raises(StartupError, match="not those that were frozen"):
        freeze(read_pairs(write_lines(path, head, *reversed(rows))), target.encoder)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "holds 0 pairs"),
        ([{"id": "a", "premise": "p"}], "is not {id, premise, hypothesis}"),
        ([PAIR | {"label": "yes"}], "is not {id, premise, hypothesis}"),
        ([["a", "b", "c"]], "is not {id, premise, hypothesis}"),
        ([PAIR | {"premise": 7}], "holds a value that is no text"),
        ([PAIR | {"hypothesis": ""}], "holds a value that is no text"),
        ([PAIR, PAIR], "two pairs named 'a'"),
        (
            [PAIR | {"group": "g"}, PAIR | {"id": "b", "premise": "Other.", "group": "g"}],
            "group 'g' have different premises",
        ),
    ],
)
def test_what_is_no_pair_is_refused(tmp_path: Path, rows: list, message: str) -> None:
    with pytest.raises(StartupError, match=message):
        read_pairs(write_lines(tmp_path / "pairs.jsonl", *rows))


def test_a_file_that_is_no_jsonl_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pairs.jsonl").write_text("{")

    with pytest.raises(StartupError, match="cannot be read as JSONL"):
        read_pairs(tmp_path / "pairs.jsonl")


def test_a_pair_over_the_token_limit_is_refused_whole(target: Target, pairs: PairFile) -> None:
    encoder = PairEncoder(target.checkpoint.tokenizer, target.checkpoint.template, 64, 49152)

    with pytest.raises(StartupError, match="the limit is 64 and nothing is truncated"):
        freeze(pairs, encoder)


def test_the_default_pairs_are_shaped_like_the_published_set(target: Target) -> None:
    made = make_pairs()
    encoder = PairEncoder(target.checkpoint.tokenizer, target.checkpoint.template, 4096, 49152)
    frozen = freeze(make_pairs(groups=10), encoder)

    assert len(made.pairs) == 303
    assert len({pair.group for pair in made.pairs}) == len({p.premise for p in made.pairs}) == 100
    assert made == make_pairs()
    assert 500 < frozen.tokens() / len(frozen.rows) < 800
