"""How good labelled answers are, question by question: the figures of `semif-bento evaluate`.

Pure numbers; knows nothing of how rows are scored or how a report looks.
"""

import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from semif_bento.decisions import Scores
from semif_bento.evidence.metrics import (
    Answers,
    Bin,
    calibration_error,
    coverage_at_risk,
    reliability,
    wilson_interval,
)
from semif_bento.evidence.rows import Row
from semif_bento.protocol import is_near_tie

RISK = 0.05
ALL = "all"


@dataclass(frozen=True, slots=True)
class Asked:
    """A row with its answers: its options as they stand, from the last to the first, and each
    moved one place towards the front, the first to the end. `seconds` are the first answer's."""

    row: Row
    scores: Scores
    reversed: Scores
    rotated: Scores
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Flips:
    """How many answers name another option when the order is another.

    `near_ties` of them were as close as the data type's noise in one of the two orders.
    """

    changed: int
    near_ties: int
    share: float


@dataclass(frozen=True, slots=True)
class Quality:
    """The figures of one engine on one question.

    `interval` is Wilson's at 95 %. `majority` is the accuracy of who knows the most frequent right
    answer and always gives it; over all questions, that of each one. `ece` and `coverage` use the
    native probability of the winner. `seconds` is the median; None where no call was timed.
    """

    question: str
    rows: int
    right: int
    accuracy: float
    interval: tuple[float, float]
    majority: float
    ece: float
    reversed: Flips
    rotated: Flips
    coverage: float
    seconds: float | None
    bins: tuple[Bin, ...]


def question_of(row: Row) -> str:
    """Return what a row is counted under.

    Its tag `question`, else its tag `kind`, else the kind of a typed question, else its text.
    """
    tags, asked = row.tags, row.decision
    typed = None if asked.kind == "options" else asked.kind
    return tags.get("question") or tags.get("kind") or typed or asked.question


def measure_questions(asked: Sequence[Asked], dtype: str) -> tuple[Quality, ...]:
    """Return the figures of each question, in order of appearance; and of all where there are two.

    Args:
        asked: at least one labelled row.
        dtype: of the model, which tells what a near tie is.
    """
    by_question: dict[str, list[Asked]] = {}
    for each in asked:
        by_question.setdefault(question_of(each.row), []).append(each)
    found = [_measure(name, own, dtype, _most(own)) for name, own in by_question.items()]
    if len(found) > 1:
        found.append(_measure(ALL, asked, dtype, sum(map(_most, by_question.values()))))
    return tuple(found)


def _measure(question: str, asked: Sequence[Asked], dtype: str, most: int) -> Quality:
    answers = Answers.of(
        [each.scores.option_logits for each in asked],
        [each.row.answer_index for each in asked],
        [each.row.group for each in asked],
    )
    confidences = np.exp(answers.log_probabilities(1.0)).max(axis=1)
    rows, right = len(asked), int(answers.is_right.sum())
    seconds = [each.seconds for each in asked if each.seconds is not None]
    return Quality(
        question=question,
        rows=rows,
        right=right,
        accuracy=right / rows,
        interval=wilson_interval(right, rows),
        majority=most / rows,
        ece=calibration_error(confidences, answers.is_right),
        reversed=_count_flips(asked, lambda each: each.reversed, dtype),
        rotated=_count_flips(asked, lambda each: each.rotated, dtype),
        coverage=coverage_at_risk(confidences, answers.is_right, RISK),
        seconds=statistics.median(seconds) if seconds else None,
        bins=reliability(confidences, answers.is_right),
    )


def _most(asked: Sequence[Asked]) -> int:
    """Return how many rows have the most frequent right option."""
    return max(Counter(each.row.answer for each in asked).values())


def _count_flips(asked: Sequence[Asked], other: Callable[[Asked], Scores], dtype: str) -> Flips:
    pairs = [(each.scores, other(each)) for each in asked]
    changed = [pair for pair in pairs if _winner(pair[0]) != _winner(pair[1])]
    near = sum(any(is_near_tie(each.option_logits, dtype) for each in pair) for pair in changed)
    return Flips(len(changed), near, len(changed) / len(pairs))


def _winner(scores: Scores) -> str:
    logits = scores.option_logits
    return scores.option_ids[logits.index(max(logits))]
