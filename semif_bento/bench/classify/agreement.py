"""Compare a pass with the reference: labels row by row, and who wins each group.

Knows nothing of where either comes from. The winner of a group is the option with the largest
entailment probability, the first of equals: what a decision by `normalized_entailment_v1` picks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from semif_bento.bench.classify.reference import Triple
from semif_bento.entailment import ENTAILMENT
from semif_bento.protocol import softmax


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far a pass is from the reference; `changed` names the rows whose label differs."""

    rows: int
    labels_equal: int
    max_entailment_diff: float
    max_logit_diff: float
    changed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Audit:
    """What became of the groups' winners.

    `changed` names groups whose pass picks none of the reference's winners: a failure. `ties` names
    those that pick another of several winners that the reference holds exactly equal.
    """

    groups: int
    rows: int
    changed: tuple[str, ...]
    ties: tuple[str, ...]


def compare(ids: Sequence[str], found: Sequence[Triple], expected: Sequence[Triple]) -> Agreement:
    """Compare logits row by row, in the same order."""
    changed: list[str] = []
    entailment_diff = logit_diff = 0.0
    for name, ours, theirs in zip(ids, found, expected, strict=True):
        if _label(ours) != _label(theirs):
            changed.append(name)
        entailment_diff = max(entailment_diff, abs(_entailment(ours) - _entailment(theirs)))
        logit_diff = max(logit_diff, *(abs(a - b) for a, b in zip(ours, theirs, strict=True)))
    return Agreement(
        len(found), len(found) - len(changed), entailment_diff, logit_diff, tuple(changed)
    )


def audit(
    groups: Mapping[str, Sequence[int]], found: Sequence[Triple], expected: Sequence[Triple]
) -> Audit:
    """Compare the winner of every group; `groups` holds the places of its rows."""
    changed: list[str] = []
    ties: list[str] = []
    for name, places in groups.items():
        theirs = [_entailment(expected[place]) for place in places]
        ours = [_entailment(found[place]) for place in places]
        winner = ours.index(max(ours))
        if theirs[winner] != max(theirs):
            changed.append(name)
        elif winner != theirs.index(max(theirs)):
            ties.append(name)
    return Audit(len(groups), sum(map(len, groups.values())), tuple(changed), tuple(ties))


def _label(logits: Triple) -> int:
    return logits.index(max(logits))


def _entailment(logits: Triple) -> float:
    return softmax(logits)[ENTAILMENT]
