"""Ask engines labelled rows in three orders of their options, and collect what that tells.

Knows nothing of files but the journal, nor of how a report looks.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from semif_bento import __version__
from semif_bento.decisions import ModelIdentity
from semif_bento.errors import EvidenceError
from semif_bento.evidence.engine_target import EngineTarget
from semif_bento.evidence.journal import Journal
from semif_bento.evidence.quality import Asked, Quality, measure_questions, question_of
from semif_bento.evidence.rows import Row, RowFile
from semif_bento.evidence.scoring import score_rows


@dataclass(frozen=True, slots=True)
class EngineQuality:
    """What one engine was found to be worth; `row_errors` are the rows that it refused."""

    engine: str
    prompt_version: str
    model: ModelIdentity
    questions: tuple[Quality, ...]
    row_errors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Everything a run found, and on what. `limit` is the most rows a question, None for all."""

    version: str
    made_at: str
    place: str
    data: str
    data_sha256: str
    seed: int
    limit: int | None
    row_errors: tuple[str, ...]
    engines: tuple[EngineQuality, ...]


def take_sample(rows: Sequence[Row], limit: int | None, seed: int) -> list[Row]:
    """Return up to `limit` rows of each question, in their order; None takes all.

    They are those with the lowest hash of seed and id: a larger limit adds rows and drops none.
    """
    if limit is None:
        return list(rows)
    by_question: dict[str, list[Row]] = {}
    for row in rows:
        by_question.setdefault(question_of(row), []).append(row)
    chosen = {
        row.decision.id
        for own in by_question.values()
        for row in sorted(own, key=lambda row: _draw(row, seed))[:limit]
    }
    return [row for row in rows if row.decision.id in chosen]


def journal_path(directory: Path, target: EngineTarget) -> Path:
    """Return where an engine's answers are kept: a file of its own for each engine."""
    return directory / f"rows-{target.kind.name}.jsonl"


def evaluate_engine(target: EngineTarget, rows: Sequence[Row], directory: Path) -> EngineQuality:
    """Ask one engine every row in three orders; what stands in its journal is not asked again.

    Two options have two orders, so such a row is asked twice.

    Args:
        target: what answers.
        rows: labelled, typed questions not yet worded.
        directory: where the journal lies.

    Raises:
        RequestError: the scorer failed; what was scored stands in the journal.
        EvidenceError: the service failed or changed, or no row could be answered.
    """
    orders = [_orders(row.word(target.kind)) for row in rows]
    each_once = {one.sha256: one for three in orders for one in three}
    scorer, path = target.scorer, journal_path(directory, target)
    with Journal(path, scorer.identity, target.prompt_version) as journal:
        scored = score_rows(scorer, list(each_once.values()), target.kind.name, journal)
    found = {
        row.sha256: (scores, seconds)
        for row, scores, seconds in zip(scored.rows, scored.scores, scored.seconds, strict=True)
    }
    asked = [
        Asked(three[0], *(found[one.sha256][0] for one in three), seconds=found[three[0].sha256][1])
        for three in orders
        if all(one.sha256 in found for one in three)
    ]
    row_errors = tuple(dict.fromkeys(scored.row_errors))
    if not asked:
        raise EvidenceError(f"The engine {target.kind.name} answers no row ({row_errors[0]})")
    return EngineQuality(
        target.kind.name,
        target.prompt_version,
        scorer.identity,
        measure_questions(asked, scorer.identity.dtype),
        row_errors,
    )


def evaluate(
    targets: Sequence[EngineTarget],
    file: RowFile,
    *,
    directory: Path,
    data: str,
    place: str,
    limit: int | None = None,
    seed: int = 0,
) -> Evaluation:
    """Evaluate several engines on the same rows, one after the other.

    Args:
        targets: what answers, at least one.
        file: labelled rows.
        directory: where the journals lie.
        data, place: what is asked and where it runs, in words for the report.
        limit: most rows of a question; None takes all.
        seed: of that sample.

    Raises:
        RequestError, EvidenceError: as `evaluate_engine` raises it.
    """
    rows = take_sample(file.rows, limit, seed)
    found = tuple(evaluate_engine(target, rows, directory) for target in targets)
    made_at = datetime.now(UTC).isoformat(timespec="seconds")
    return Evaluation(
        __version__, made_at, place, data, file.sha256, seed, limit, file.row_errors, found
    )


def _orders(row: Row) -> tuple[Row, Row, Row]:
    """Return a row with its options as they stand, reversed, and rotated by one."""
    options = row.decision.options
    backwards, rotated = (
        replace(row, decision=replace(row.decision, options=order))
        for order in (options[::-1], (*options[1:], options[0]))
    )
    return row, backwards, rotated


def _draw(row: Row, seed: int) -> str:
    return hashlib.sha256(f"{seed} {row.decision.id}".encode()).hexdigest()
