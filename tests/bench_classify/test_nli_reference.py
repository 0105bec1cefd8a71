import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from semif_bento.bench.classify.inputs import FrozenInputs, PairFile, freeze
from semif_bento.bench.classify.reference import (
    Reference,
    make_reference,
    read_reference,
    run_padded,
    write_reference,
)
from semif_bento.bench.classify.target import Target
from semif_bento.errors import StartupError


@pytest.fixture
def path(reference: Reference, tmp_path: Path) -> Path:
    write_reference(tmp_path / "reference.json", reference)
    return tmp_path / "reference.json"


def change(path: Path, **origin: object) -> None:
    found = json.loads(path.read_text())
    found["origin"] |= origin
    path.write_text(json.dumps(found))


def test_the_reference_is_the_untouched_model_pair_by_pair(
    target: Target, inputs: FrozenInputs, reference: Reference
) -> None:
    with torch.inference_mode():
        for row, found in zip(inputs.rows, reference.rows, strict=True):
            logits = target.checkpoint.model(input_ids=torch.tensor([row.ids])).logits
            assert found.logits == tuple(logits[0].tolist())
            assert (found.id, found.tokens_sha256) == (row.pair.id, row.tokens_sha256)


def test_padded_batches_of_the_untouched_model_are_close_to_it(
    target: Target, inputs: FrozenInputs, reference: Reference
) -> None:
    found = run_padded(target, inputs, batch=4)

    for ours, theirs in zip(found, reference.logits(), strict=True):
        assert ours == pytest.approx(theirs, abs=1e-3)


def test_what_is_kept_is_read_back_to_the_bit(
    target: Target, inputs: FrozenInputs, reference: Reference, path: Path
) -> None:
    assert read_reference(path, target, inputs) == reference


def test_progress_is_told_after_every_pair(target: Target, inputs: FrozenInputs) -> None:
    told: list[int] = []

    make_reference(target, inputs, told.append)

    assert told == list(range(1, 8))


@pytest.mark.parametrize(
    ("origin", "message"),
    [
        ({"model": "acme/other"}, "another model: 'acme/other', not 'tiny-nli'"),
        ({"revision": "seed 1"}, "another revision: 'seed 1'"),
        ({"dtype": "bfloat16"}, "another dtype: 'bfloat16', not 'float32'"),
        ({"template_version": "nli-pair-x"}, "another template version: 'nli-pair-x'"),
        ({"tokens_sha256": "0" * 64}, "another tokenizer: token ids differ"),
        ({"texts_sha256": "0" * 64}, "other pairs: their texts differ"),
    ],
)
def test_a_reference_of_something_else_is_refused_by_name(
    target: Target, inputs: FrozenInputs, path: Path, origin: dict[str, str], message: str
) -> None:
    change(path, **origin)

    with pytest.raises(StartupError, match=message):
        read_reference(path, target, inputs)


def test_a_reference_of_more_pairs_is_refused(target: Target, pairs: PairFile, path: Path) -> None:
    fewer = freeze(replace(pairs, pairs=pairs.pairs[:-1]), target.encoder)

    with pytest.raises(StartupError, match="other pairs"):
        read_reference(path, target, fewer)


def test_rows_that_do_not_fit_their_own_hash_are_refused(
    target: Target, inputs: FrozenInputs, path: Path
) -> None:
    found = json.loads(path.read_text())
    found["rows"][0], found["rows"][1] = found["rows"][1], found["rows"][0]
    path.write_text(json.dumps(found))

    with pytest.raises(StartupError, match="rows are not those"):
        read_reference(path, target, inputs)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"origin": {}, "made_on": "", "rows": []}'])
def test_what_is_no_reference_is_told(
    target: Target, inputs: FrozenInputs, path: Path, text: str
) -> None:
    path.write_text(text)

    with pytest.raises(StartupError, match="is no reference"):
        read_reference(path, target, inputs)
