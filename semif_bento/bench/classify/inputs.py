"""Pairs as a benchmark freezes them: read, encoded, hashed, written; knows nothing of models.

A file is JSONL of `{id, premise, hypothesis}`, each with an optional `group` (pairs of one premise
and instruction, between which a decision chooses). A frozen file adds `tokens_sha256` to every row
and begins with `{pairs, tokens_sha256}`; whoever reads it under another tokenizer or template, or
after a row was changed or lost, is refused.
"""

import hashlib
import json
from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from semif_bento.engine.nli.encoding import PairEncoder
from semif_bento.entailment import Pair
from semif_bento.errors import InvalidRequest, StartupError

TEXTS, HASH = ("id", "premise", "hypothesis"), "tokens_sha256"


@dataclass(frozen=True, slots=True)
class NamedPair:
    """A pair with the name it goes by; `tokens_sha256` is what its frozen file claims."""

    id: str
    premise: str
    hypothesis: str
    group: str | None = None
    tokens_sha256: str | None = None


@dataclass(frozen=True, slots=True)
class PairFile:
    """What a file holds; `tokens_sha256` is what it claims of all its token ids together."""

    pairs: tuple[NamedPair, ...]
    tokens_sha256: str | None = None


@dataclass(frozen=True, slots=True)
class FrozenPair:
    """A pair and the token ids that stand for it; the hash is the one that answers carry."""

    pair: NamedPair
    ids: tuple[int, ...]
    tokens_sha256: str


@dataclass(frozen=True, slots=True)
class FrozenInputs:
    """All pairs in order.

    `tokens_sha256` is over the ids of all rows in order, each id as four bytes, lowest first;
    `texts_sha256` is over ids, texts and groups, so that another tokenizer can be told from other
    pairs.
    """

    rows: tuple[FrozenPair, ...]
    tokens_sha256: str
    texts_sha256: str

    def tokens(self) -> int:
        """Return the number of token ids in all rows."""
        return sum(len(row.ids) for row in self.rows)

    def groups(self) -> dict[str, list[int]]:
        """Return the places of the rows of every group of two or more."""
        found: dict[str, list[int]] = defaultdict(list)
        for place, row in enumerate(self.rows):
            if row.pair.group is not None:
                found[row.pair.group].append(place)
        return {name: places for name, places in found.items() if len(places) > 1}


def read_pairs(path: Path) -> PairFile:
    """Read a file of pairs, frozen or not.

    Raises:
        StartupError: it cannot be read, a line is not what it must be, an id comes twice, the
            pairs of a group have different premises, or a frozen file lost or gained rows.
    """
    try:
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        rows = [json.loads(line) for line in lines]
    except (OSError, ValueError) as exc:
        raise StartupError(f"{path} cannot be read as JSONL: {type(exc).__name__}.") from exc
    head: dict[str, Any] = {}
    if rows and isinstance(rows[0], dict) and set(rows[0]) == {"pairs", HASH}:
        head = rows.pop(0)
    pairs = tuple(_pair(path, number, row) for number, row in enumerate(rows, start=1))
    if not pairs or head.get("pairs", len(pairs)) != len(pairs):
        raise StartupError(f"{path} holds {len(pairs)} pairs of {head.get('pairs', 'at least 1')}.")
    _refuse_mixed(path, pairs)
    return PairFile(pairs, head.get(HASH))


def freeze(file: PairFile, encoder: PairEncoder) -> FrozenInputs:
    """Encode every pair and compare the ids with what the file claims of them.

    Raises:
        StartupError: a pair is over the token limit or cannot be encoded, or its ids are not those
            that it was frozen with.
    """
    try:
        encoded = encoder.encode([Pair(pair.premise, pair.hypothesis) for pair in file.pairs])
    except InvalidRequest as exc:
        raise StartupError(f"The pairs cannot be frozen: {exc}") from exc
    rows = tuple(
        FrozenPair(pair, given.prefix_ids + given.suffix_ids, given.tokens_sha256)
        for pair, given in zip(file.pairs, encoded, strict=True)
    )
    for row in rows:
        if row.pair.tokens_sha256 not in (None, row.tokens_sha256):
            raise StartupError(
                f"Pair {row.pair.id!r} was frozen with another tokenizer, template or text: its "
                "token ids differ."
            )
    frozen = FrozenInputs(rows, _hash_ids(rows), _hash_texts(file.pairs))
    if file.tokens_sha256 not in (None, frozen.tokens_sha256):
        raise StartupError("The pairs are not those that were frozen: all token ids differ.")
    return frozen


def write_inputs(path: Path, inputs: FrozenInputs) -> None:
    """Write frozen pairs with their hashes.

    Raises:
        StartupError: the file cannot be written.
    """
    rows: list[dict[str, object]] = [{"pairs": len(inputs.rows), HASH: inputs.tokens_sha256}]
    for row in inputs.rows:
        line: dict[str, object] = {key: getattr(row.pair, key) for key in TEXTS}
        if row.pair.group is not None:
            line["group"] = row.pair.group
        rows.append(line | {HASH: row.tokens_sha256})
    try:
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        path.write_text(text, encoding="utf-8")
    except OSError as exc:
        raise StartupError(f"{path} cannot be written: {type(exc).__name__}.") from exc


def _pair(path: Path, number: int, row: Any) -> NamedPair:
    if not isinstance(row, dict) or not {*TEXTS} <= set(row) <= {*TEXTS, "group", HASH}:
        raise StartupError(
            f"Pair {number} of {path} is not {{id, premise, hypothesis}}, with or without a group "
            "and tokens_sha256."
        )
    if not all(isinstance(text, str) and text for text in row.values()):
        raise StartupError(f"Pair {number} of {path} holds a value that is no text.")
    return NamedPair(**row)


def _refuse_mixed(path: Path, pairs: Sequence[NamedPair]) -> None:
    ids, premises = set[str](), dict[str, str]()
    for pair in pairs:
        if pair.id in ids:
            raise StartupError(f"{path} holds two pairs named {pair.id!r}.")
        ids.add(pair.id)
        if pair.group and premises.setdefault(pair.group, pair.premise) != pair.premise:
            raise StartupError(f"The pairs of group {pair.group!r} have different premises.")


def _hash_ids(rows: Iterable[FrozenPair]) -> str:
    digest = hashlib.sha256()
    for row in rows:
        digest.update(array("I", row.ids).tobytes())
    return digest.hexdigest()


def _hash_texts(pairs: Iterable[NamedPair]) -> str:
    digest = hashlib.sha256()
    for pair in pairs:
        parts = [pair.id, pair.premise, pair.hypothesis, pair.group]
        digest.update(json.dumps(parts).encode() + b"\n")
    return digest.hexdigest()
