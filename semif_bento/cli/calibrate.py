"""`semif-bento calibrate`: fit a workload's temperature on labelled rows, and say what it is worth.

Knows nothing of the numbers; it opens, scores, evaluates, writes and prints.
"""

import argparse
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from semif_bento.cli.table import render_table
from semif_bento.cli.target import open_engine_target, require_packages
from semif_bento.engine.registry import LETTERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from semif_bento.evidence.calibration_report import CalibrationReport
    from semif_bento.evidence.engine_target import EngineTarget
    from semif_bento.evidence.rows import Row
    from semif_bento.evidence.scoring import ScoredRows

TABLE, JOURNAL = "calibration.json", "rows.jsonl"


def run(args: argparse.Namespace) -> int:
    """Calibrate; return 0 when a table was written and 1 when the fit is not to be trusted.

    Raises:
        EvidenceError: the rows, the service or a file is not what it must be.
        StartupError: the model cannot be loaded.
        RequestError: the scorer failed. In each case what was scored stays in the journal.
    """
    require_packages()
    from semif_bento.evidence import calibration_report, fitting
    from semif_bento.evidence.rows import bundled_rows, read_rows
    from semif_bento.evidence.temperature import evaluate

    file = read_rows(args.data or bundled_rows(), labelled=True)
    folder = "calibration" if args.engine == LETTERS.name else f"calibration-{args.engine}"
    directory: Path = args.out or Path(f"{folder}-{args.workload}")
    target, scored = _score(args, file.rows, directory / JOURNAL)
    model = target.scorer.identity
    answers = fitting.to_answers(scored)
    doubts = fitting.find_doubts(scored, answers, target.kind)
    evaluation = evaluate(answers, args.seed)
    doubts += fitting.find_faults(evaluation)
    provenance = fitting.to_provenance(evaluation, answers, model, file.sha256, target.kind)
    report = calibration_report.CalibrationReport(
        workload=args.workload,
        engine=target.kind.name,
        prompt_version=target.prompt_version,
        model=model,
        data_sha256=file.sha256,
        rows=provenance.rows,
        groups=provenance.groups,
        seed=args.seed,
        evaluation=evaluation,
        doubts=tuple(doubts),
        row_errors=(*file.row_errors, *scored.row_errors),
        slices=fitting.find_slices(scored, answers),
    )
    calibration_report.write_report(directory, report)
    _print(report, directory)
    if doubts and not args.force:
        print("No table was written; --force writes it all the same.")
        return 1
    table: Path = args.table or directory / TABLE
    fitting.write_table(table, args.workload, evaluation.temperature, provenance)
    print(f"{table} holds {args.workload!r} now; {target.kind.binding.variable} reads it.")
    return 0


def _score(
    args: argparse.Namespace, rows: "Sequence[Row]", path: Path
) -> "tuple[EngineTarget, ScoredRows]":
    from semif_bento.evidence.journal import Journal
    from semif_bento.evidence.scoring import score_rows

    with (
        contextlib.closing(open_engine_target(args)) as target,
        Journal(path, target.scorer.identity, target.prompt_version) as journal,
    ):
        worded = [row.word(target.kind) for row in rows]
        return target, score_rows(target.scorer, worded, "scoring", journal)


def _print(report: "CalibrationReport", directory: Path) -> None:
    from semif_bento.evidence.calibration_report import PAGE, PICTURE, REPORT, figures_table

    header = ("", "raw", "out of fold", "change")
    for row_error in report.row_errors:
        print(f"left out: {row_error}")
    print(f"\nT = {report.evaluation.temperature:.4g} from {report.rows} rows\n")
    print(render_table(header, figures_table(report.evaluation)))
    print()
    for sentence in report.sentences():
        print(sentence.replace("**", ""))
    print(f"{directory}: {REPORT}, {PAGE}, {PICTURE}")
