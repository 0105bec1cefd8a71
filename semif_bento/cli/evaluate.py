"""`semif-bento evaluate`: how good an engine's answers are, question by question.

Knows nothing of the numbers; it opens, asks, writes and prints.
"""

import argparse
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from semif_bento.cli.table import render_table
from semif_bento.cli.target import open_engine_targets, require_packages

if TYPE_CHECKING:
    from semif_bento.evidence.evaluation import Evaluation
    from semif_bento.evidence.rows import RowFile

DIRECTORY = "evaluation"


def run(args: argparse.Namespace) -> int:
    """Evaluate, write the reports and print the tables; return 0.

    Raises:
        EvidenceError: the rows, the service or a file is not what it must be.
        StartupError: the model cannot be loaded.
        RequestError: the scorer failed. In each case what was scored stays in the journals.
    """
    require_packages()
    from semif_bento.evidence import evaluation, evaluation_page
    from semif_bento.evidence.target import IN_PROCESS

    data, file = _read(args)
    directory: Path = args.out or Path(DIRECTORY)
    with contextlib.ExitStack() as at_end:
        targets = open_engine_targets(args)
        for target in targets:
            at_end.callback(target.close)
        found = evaluation.evaluate(
            targets,
            file,
            directory=directory,
            data=data,
            place=args.url or IN_PROCESS,
            limit=args.limit,
            seed=args.seed,
        )
    evaluation_page.write_report(directory, found)
    _print(found)
    print(f"\n{directory}: {evaluation_page.REPORT}, {evaluation_page.PAGE}")
    return 0


def _read(args: argparse.Namespace) -> "tuple[str, RowFile]":
    """Return what is asked, in words, and its rows."""
    from semif_bento.evidence.canary import read_canary
    from semif_bento.evidence.rows import bundled_rows, read_rows, typed_rows

    if args.sys1bench:
        return "sys1bench, its canary set", read_canary()
    if args.typed:
        return "the typed questions that ship with it", read_rows(typed_rows(), labelled=True)
    if args.data:
        return args.data.name, read_rows(args.data, labelled=True)
    return "the decisions that ship with it", read_rows(bundled_rows(), labelled=True)


def _print(found: "Evaluation") -> None:
    from semif_bento.evidence.evaluation_page import HEADER, LEGEND, figures_table

    for row_error in found.row_errors:
        print(f"left out: {row_error}")
    for engine in found.engines:
        print(f"\n{engine.engine}: {engine.model.source} at {engine.model.revision}")
        for row_error in engine.row_errors:
            print(f"left out: {row_error}")
        print(f"\n{render_table(HEADER, figures_table(engine))}")
    print(f"\n{LEGEND}")
