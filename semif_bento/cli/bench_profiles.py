"""`semif-bento bench-classify --profiles`: sweep settings and print a ranking; promote nothing.

Knows nothing of how a profile is run or measured.
"""

import argparse
import os
from dataclasses import asdict
from typing import TYPE_CHECKING

from semif_bento.cli.environment import Environment
from semif_bento.cli.table import render_table
from semif_bento.errors import StartupError

if TYPE_CHECKING:
    from semif_bento.bench.classify.sweep import Outcome, Profile


def run(args: argparse.Namespace, environment: Environment) -> int:
    """Run every profile and print the ranking; return 1 when one of them could not be ranked.

    Raises:
        StartupError: the file of profiles, the output folder or a setting is not right, or the
            baseline did not start.
    """
    from semif_bento.bench.classify import sweep
    from semif_bento.bench.classify.run_folder import DONE, RunFolder

    if args.out is None:
        raise StartupError("--profiles needs --out, a new folder for all that is measured.")
    profiles = sweep.read_profiles(args.profiles)
    run_folder = RunFolder(args.out)
    arguments = ["--passes", str(args.passes), "--threads", str(args.threads)]

    def started(profile: "Profile") -> None:
        run_folder.phase(f"measuring {profile.name}", profiles=[asdict(one) for one in profiles])
        print(f"measuring {profile.name}", flush=True)

    def ended(outcome: "Outcome") -> None:
        run_folder.complete({"profile": asdict(outcome.profile), "reason": outcome.reason})
        if outcome.reason:
            print(f"  not ranked: {outcome.reason}", flush=True)

    outcomes = sweep.run_profiles(
        profiles,
        args.out,
        {**os.environ, **environment.with_token().values},
        arguments,
        args.inputs,
        args.batch,
        started,
        ended,
        args.reference,
    )
    ranked, unranked = sweep.rank(outcomes)
    run_folder.phase(DONE, ranking=[outcome.profile.name for outcome in ranked])
    _print(ranked, unranked)
    return 1 if unranked else 0


def _print(ranked: "list[Outcome]", unranked: "list[Outcome]") -> None:
    header = ("profile", "cold s ", "warm s ", "disabled s ", "cold ", "warm ", "max ΔP ")
    rows = [
        (
            outcome.profile.name,
            *(f"{outcome.seconds(state):.3f}" for state in ("cold", "warm", "disabled")),
            f"{outcome.facts['cold_ratio']:.2f}×",
            f"{outcome.facts['warm_ratio']:.2f}×",
            f"{outcome.max_entailment_diff():.2g}",
        )
        for outcome in ranked
    ]
    print("\n" + render_table(header, rows))
    for outcome in unranked:
        print(f"{outcome.profile.name} is not ranked: {outcome.reason}")
    print("\nFastest on fresh pairs first. Nothing was changed; to use one is your decision.")
