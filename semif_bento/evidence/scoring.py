"""Score rows one after the other, with a progress bar and a journal.

Knows nothing of where the scorer runs or what the answers are for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tqdm import tqdm

from semif_bento.decisions import (
    DirectOutcome,
    EngineStatus,
    ModelIdentity,
    ScoreRequest,
    Scores,
    SharedOutcome,
)
from semif_bento.errors import InvalidRequest
from semif_bento.evidence.journal import Journal
from semif_bento.evidence.rows import Row


class Answering(Protocol):
    """What answers rows; `decisions.Scorer` tells what it does and raises."""

    identity: ModelIdentity

    def direct(self, request: ScoreRequest) -> DirectOutcome:
        """Score the only decision of `request`."""
        ...


class TargetScorer(Answering, Protocol):
    """What is asked of a scorer here; `decisions.Scorer` tells what each does and raises."""

    def shared(self, request: ScoreRequest) -> SharedOutcome:
        """Score every decision of `request` over its one state."""
        ...

    def status(self) -> EngineStatus:
        """Report memory, kernels and cache figures."""
        ...


@dataclass(frozen=True, slots=True)
class ScoredRows:
    """Rows with their answers, in one order; and one sentence for each row that was refused.

    `seconds` are each call's total, None where an older journal does not tell; it may be left out.
    """

    rows: tuple[Row, ...]
    scores: tuple[Scores, ...]
    row_errors: tuple[str, ...] = ()
    seconds: tuple[float | None, ...] = ()


def score_rows(
    scorer: Answering, rows: Sequence[Row], title: str, journal: Journal | None = None
) -> ScoredRows:
    """Score every row by a direct call; a row that stands in the journal is not scored again.

    A row that the scorer refuses (over the token limit, say) is listed and left out.

    Args:
        scorer: what answers.
        rows: what is asked.
        title: what the progress bar on stderr says.
        journal: where answers are found and kept; None scores every row anew.

    Raises:
        RequestError: the scorer failed; what was scored stands in the journal.
        EvidenceError: the service failed or changed; the same holds.
    """
    kept: list[Row] = []
    scores: list[Scores] = []
    row_errors: list[str] = []
    seconds: list[float | None] = []
    for row in tqdm(rows, desc=title, unit="row"):
        found = journal.get(row) if journal else None
        took = journal.seconds(row) if journal else None
        if found is None:
            try:
                outcome = scorer.direct(row.request())
            except InvalidRequest as exc:
                row_errors.append(f"line {row.line}: {exc.message}")
                continue
            found, took = outcome.scores, outcome.total_seconds
            if journal:
                journal.add(row, found, took)
        kept.append(row)
        scores.append(found)
        seconds.append(took)
    return ScoredRows(tuple(kept), tuple(scores), tuple(row_errors), tuple(seconds))
