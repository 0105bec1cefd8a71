"""`semif-bento accept`: examine a deployment in six checks, write a page and a file, say pass.

Knows nothing of the checks; it opens, runs, writes and prints.
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from semif_bento.cli.table import render_table
from semif_bento.cli.target import open_target, require_packages
from semif_bento.engine.registry import LETTERS

if TYPE_CHECKING:
    from semif_bento.evidence.acceptance import Acceptance
    from semif_bento.evidence.comparison import Movement

REFERENCE, REPORT, PAGE = "reference.jsonl", "report.json", "report.html"


def run(args: argparse.Namespace) -> int:
    """Run the checks; return 0 when all pass and 1 when one does not.

    Raises:
        EvidenceError: the rows, the reference, the service or a file is not what it must be.
        StartupError: the model cannot be loaded.
        RequestError: the scorer failed.
    """
    require_packages()
    from semif_bento.evidence import acceptance, acceptance_page, comparison, reference
    from semif_bento.evidence.rows import bundled_rows, choose_rows, read_rows

    old = comparison.read_report(args.against) if args.against else None
    file = read_rows(args.rows or bundled_rows(), labelled=False).word(LETTERS)
    if args.reference is None:
        reference.require_maker(is_local=not args.url)
    directory: Path = args.out or Path("acceptance")
    target = open_target(args)
    if args.reference is None:
        device = target.scorer.identity.device
        chosen = choose_rows(file.rows, args.sample_rows, device)
        theirs = reference.make_reference(target, chosen, directory / REFERENCE)
    else:
        theirs = reference.read_reference(args.reference)
    plan = acceptance.Plan(args.seed, args.runs, args.max_p50_ms, args.sample_rows)
    found = acceptance.examine(target, file, theirs, plan)
    movements = comparison.compare_reports(old, found) if old else ()
    comparison.write_report(directory / REPORT, found)
    acceptance_page.write_page(directory / PAGE, found, movements)
    _print(found, movements)
    print(f"{directory}: {REPORT}, {PAGE}")
    return 0 if found.passed else 1


def _print(found: "Acceptance", movements: "tuple[Movement, ...]") -> None:
    print()
    for row_error in found.row_errors:
        print(f"left out: {row_error}")
    rows = [
        ("pass" if check.passed else "FAIL", check.name, check.number, check.bar)
        for check in found.checks
    ]
    print(render_table(("", "check", "found", "bar"), rows))
    for sentence in found.sentences():
        print(sentence.replace("**", ""))
    if movements:
        cells = [(m.name, m.old, m.new, m.verdict) for m in movements]
        print("\n" + render_table(("against the earlier run", "then ", "now ", ""), cells))
    print("\nAccepted." if found.passed else "\nNot accepted.")
