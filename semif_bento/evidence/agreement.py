"""Compare two sets of answers to the same rows, near ties told apart from disagreements.

Pure; knows nothing of where answers come from.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from semif_bento.decisions import Scores
from semif_bento.errors import EvidenceError
from semif_bento.protocol import margin


@dataclass(frozen=True, slots=True)
class Flip:
    """A row whose two answers have different winners.

    `margin` is the smaller of both answers' gaps between their two highest logits, `gap` the
    largest difference of one option's logit between the answers (nats).
    """

    row_id: str
    ours: str
    theirs: str
    margin: float
    gap: float


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far two sets of answers agree.

    `hashes` and `winners` count rows that are the same; `gaps` holds each row's largest logit
    difference (nats, in order of the rows). A flip is a near tie when the noise can close its
    margin; every other flip is a disagreement.
    """

    rows: int
    hashes: int
    winners: int
    gaps: tuple[float, ...]
    probability_gap: float
    near_ties: tuple[Flip, ...]
    disagreements: tuple[Flip, ...]

    @property
    def gap(self) -> float:
        """Return the largest logit difference of all rows (nats)."""
        return max(self.gaps)

    def within(self, noise: float) -> int:
        """Count rows whose winner is the same and whose logits differ by no more than `noise`."""
        flips = (*self.near_ties, *self.disagreements)
        close = sum(gap <= noise for gap in self.gaps)
        return close - sum(flip.gap <= noise for flip in flips)


def compare_answers(ours: Sequence[Scores], theirs: Sequence[Scores], noise: float) -> Agreement:
    """Compare answer by answer.

    Args:
        ours: one answer or more.
        theirs: the same rows in the same order.
        noise: a margin up to this (nats) makes a flip a near tie.

    Raises:
        EvidenceError: a pair answers different rows or options.
    """
    flips: list[Flip] = []
    gaps: list[float] = []
    probability_gaps: list[float] = []
    for mine, other in zip(ours, theirs, strict=True):
        if (mine.decision_id, mine.option_ids) != (other.decision_id, other.option_ids):
            raise EvidenceError(f"Two answers to {mine.decision_id!r} have different options.")
        gaps.append(_largest_gap(mine.option_logits, other.option_logits))
        probability_gaps.append(_largest_gap(mine.probabilities, other.probabilities))
        if winner(mine) != winner(other):
            closest = min(margin(mine.option_logits), margin(other.option_logits))
            flips.append(Flip(mine.decision_id, winner(mine), winner(other), closest, gaps[-1]))
    return Agreement(
        rows=len(gaps),
        hashes=sum(a.prompt_sha256 == b.prompt_sha256 for a, b in zip(ours, theirs, strict=True)),
        winners=len(gaps) - len(flips),
        gaps=tuple(gaps),
        probability_gap=max(probability_gaps),
        near_ties=tuple(flip for flip in flips if flip.margin <= noise),
        disagreements=tuple(flip for flip in flips if flip.margin > noise),
    )


def winner(scores: Scores) -> str:
    """Return the id of the option with the highest logit, the first of equal ones."""
    return scores.option_ids[scores.option_logits.index(max(scores.option_logits))]


def _largest_gap(ours: Sequence[float], theirs: Sequence[float]) -> float:
    return max(abs(a - b) for a, b in zip(ours, theirs, strict=True))
