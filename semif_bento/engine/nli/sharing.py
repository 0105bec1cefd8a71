"""Find the beginnings that inputs share; knows nothing of models, memory or what the ids mean.

What is shared depends on the inputs alone, never on what a cache holds: the same request always
runs the same way, and gives the same bits.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from semif_bento.engine.nli.encoding import EncodedInput

MIN_SAVED_TOKENS = 96
"""A beginning gets a forward of its own when that saves this many tokens, about what the forward
costs whatever its length (docs/bench-classify.md has the figures)."""
MIN_SHARED_TOKENS = 2
"""A prefix is not extended by less than this."""
LEVELS = 6
"""Beginnings within beginnings; a premise and an instruction make two."""

Ids = tuple[int, ...]


@dataclass(slots=True)
class Beginning:
    """Tokens that rows share, after those of the beginning that this one lies within.

    `rows` start to differ at its end and are run from there, each with its own suffix; rows of
    `children` share more. The outermost is empty: its rows share nothing and are run whole.
    """

    ids: Ids
    length: int
    rows: list[int] = field(default_factory=list)
    children: list["Beginning"] = field(default_factory=list)

    def all_rows(self) -> list[int]:
        """Return the rows that begin so, those of the children included."""
        return [*self.rows, *(row for child in self.children for row in child.all_rows())]


def find_beginnings(inputs: Sequence[EncodedInput], *, kept_tokens: int) -> Beginning:
    """Return what distinct inputs share, as a tree.

    Args:
        inputs: differ from each other; their order does not matter.
        kept_tokens: longest beginning that a cache can keep. A premise up to that may come again
            and be found there, so reading it apart pays even for one hypothesis.
    """
    root = Beginning((), 0)
    by_prefix: dict[Ids, list[int]] = defaultdict(list)
    for row, given in enumerate(inputs):
        by_prefix[given.prefix_ids].append(row)
    loose: dict[int, Ids] = {}
    for prefix, rows in sorted(by_prefix.items()):
        readers = len(rows) - 1 or int(len(prefix) <= kept_tokens)
        if len(prefix) * readers >= MIN_SAVED_TOKENS:
            premise = Beginning(prefix, len(prefix))
            root.children.append(premise)
            _part({row: inputs[row].suffix_ids for row in rows}, premise)
        else:
            loose |= {row: prefix + inputs[row].suffix_ids for row in rows}
    _part(loose, root)
    return root


def _part(ids: Mapping[int, Ids], beginning: Beginning) -> None:
    """Put rows, whose ids after a beginning are given, into it or into its children."""
    ordered = sorted(ids, key=lambda row: ids[row])
    _part_from(ids, ordered, at=0, base=0, parent=beginning, levels=LEVELS)


def _part_from(
    ids: Mapping[int, Ids], rows: Sequence[int], at: int, base: int, parent: Beginning, levels: int
) -> None:
    """Part rows that are equal up to index `at` of their ids; `parent` ends at index `base`."""
    buckets: dict[int, list[int]] = defaultdict(list)
    for row in rows:
        if levels and len(ids[row]) > at + 1:
            buckets[ids[row][at]].append(row)
        else:
            parent.rows.append(row)
    for bucket in buckets.values():
        if len(bucket) == 1:
            parent.rows.extend(bucket)
            continue
        end = _common_length([ids[row] for row in bucket])
        saved, shared = (len(bucket) - 1) * (end - base), end - base
        if saved >= MIN_SAVED_TOKENS and shared >= MIN_SHARED_TOKENS:
            child = Beginning(ids[bucket[0]][base:end], parent.length + shared)
            parent.children.append(child)
            _part_from(ids, bucket, end, end, child, levels - 1)
        else:
            _part_from(ids, bucket, end, base, parent, levels - 1)


def _common_length(rows: Sequence[Ids]) -> int:
    """Return how many first ids ordered rows share, such that each keeps one of its own."""
    first, last = rows[0], rows[-1]  # of ordered sequences these two part soonest
    longest = min(len(row) for row in rows) - 1
    for index in range(longest):
        if first[index] != last[index]:
            return index
    return longest
