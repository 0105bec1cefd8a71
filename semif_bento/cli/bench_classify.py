"""`semif-bento bench-classify`: hold the NLI engine against plain transformers, pair by pair.

Prints what it finds as it goes; knows nothing of how pairs are run or compared. Exit code 1 when a
label or a winner differs, when the run is void, and with `--bars` when a ratio is under its bar.
"""

import argparse
import contextlib
import os
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from semif_bento.cli import bench_profiles
from semif_bento.cli.environment import Environment, read_environment
from semif_bento.cli.table import render_table
from semif_bento.errors import SemifError

if TYPE_CHECKING:
    from semif_bento.bench.classify.gpu_watch import GpuWatch
    from semif_bento.bench.classify.inputs import FrozenInputs
    from semif_bento.bench.classify.measurement import Check, CheckedPass, Measurement
    from semif_bento.bench.classify.reference import Reference
    from semif_bento.bench.classify.run_folder import RunFolder
    from semif_bento.bench.classify.target import Target
    from semif_bento.settings import Settings

TINY = {
    "SEMIF_MODEL": "none",
    "SEMIF_DEVICE": "cpu",
    "SEMIF_NLI_DTYPE": "float32",
    "SEMIF_PREFIX_CACHE_MIB": "1024",
}
"""What the small checkpoint is measured with, where the environment does not say otherwise."""
PROGRESS_ROWS = 50


def run(args: argparse.Namespace) -> int:
    """Measure, or sweep profiles; return 0 when all of it holds.

    Raises:
        StartupError: a setting, a file, the model or the output folder is not what it must be.
        RequestError: the classifier failed.
    """
    environment = read_environment(os.environ, args.env_file)
    is_tiny = not environment.values.get("SEMIF_NLI_MODEL")
    if is_tiny:
        for name, value in TINY.items():
            if not environment.values.get(name):
                environment = environment.with_value(name, value, "the small checkpoint's")
    if args.profiles:
        return bench_profiles.run(args, environment)
    _quiet(args.threads)
    from semif_bento.bench.classify.run_folder import FAILED, RunFolder

    run_folder = RunFolder(args.out)
    try:
        with _settings(environment, is_tiny) as settings:
            return _run(args, settings, is_tiny, run_folder)
    except SemifError as exc:
        run_folder.phase(FAILED, reason=str(exc))
        raise


def _run(
    args: argparse.Namespace, settings: "Settings", is_tiny: bool, run_folder: "RunFolder"
) -> int:
    from semif_bento.bench.classify.inputs import write_inputs
    from semif_bento.bench.classify.run_folder import DONE, INPUTS, REFERENCE
    from semif_bento.bench.classify.target import open_target

    if settings.device == "cpu":
        print("no card is watched: the device is a CPU")
    with _watch(settings) as watch:
        run_folder.phase("loading", command=" ".join(map(str, _arguments(args))))
        target = open_target(settings, is_tiny=is_tiny)
        inputs = _freeze(args.inputs, target)
        run_folder.phase("frozen", model=asdict(target.identity), pairs=len(inputs.rows))
        for path in (args.write_inputs, run_folder.path(INPUTS)):
            if path:
                write_inputs(path, inputs)
        if args.write_inputs:
            print(f"wrote {args.write_inputs}; nothing was measured")
            run_folder.phase(DONE)
            return 0
        run_folder.phase("making or reading the reference")
        reference = _reference(args.reference, target, inputs, run_folder.path(REFERENCE))
        if args.control:
            _control(target, inputs, reference, args.batch, run_folder)
        measurement = _measure(args, target, inputs, reference, run_folder)
    void = watch.fault() if watch else None
    faults, missed = measurement.faults(), measurement.missed_bars()
    run_folder.phase(
        DONE,
        void=void,
        faults=faults,
        missed_bars=missed,
        cold_ratio=measurement.cold_ratio,
        warm_ratio=measurement.warm_ratio,
        states={figures.state: asdict(figures) for figures in measurement.states},
        card_samples=watch.samples if watch else None,
        card_longest_gap_s=watch.longest_gap_s if watch else None,
    )
    _print_figures(measurement)
    for sentence in (*faults, *missed):
        print(sentence)
    if void:
        print(f"This run is void and says nothing: {void}")
    elif watch:
        print(f"{watch.samples} samples of the card; longest gap {watch.longest_gap_s:.1f} s")
    return 1 if void or faults or (missed and args.bars) else 0


def _freeze(path: Path | None, target: "Target") -> "FrozenInputs":
    from semif_bento.bench.classify.inputs import freeze, read_pairs
    from semif_bento.bench.classify.synthetic import make_pairs

    inputs = freeze(read_pairs(path) if path else make_pairs(), target.encoder)
    tokens, rows = inputs.tokens(), len(inputs.rows)
    print(
        f"{rows} pairs, {len(inputs.groups())} groups of two or more, {tokens} tokens "
        f"({tokens / rows:.0f} a pair); tokens_sha256 {inputs.tokens_sha256}",
        flush=True,
    )
    return inputs


def _reference(
    given: Path | None, target: "Target", inputs: "FrozenInputs", kept: Path | None
) -> "Reference":
    from semif_bento.bench.classify.reference import (
        make_reference,
        read_reference,
        write_reference,
    )

    if given:
        reference = read_reference(given, target, inputs)
        print(f"reference: {given}, made on {reference.made_on}", flush=True)
    else:

        def show(done: int) -> None:
            if done % PROGRESS_ROWS == 0 or done == len(inputs.rows):
                print(f"reference: {done} of {len(inputs.rows)} pairs", flush=True)

        reference = make_reference(target, inputs, show)
    if kept:
        write_reference(kept, reference)
    return reference


def _control(
    target: "Target",
    inputs: "FrozenInputs",
    reference: "Reference",
    batch: int,
    run_folder: "RunFolder",
) -> None:
    """Tell how far the untouched model is from itself when it is run in padded batches."""
    from semif_bento.bench.classify.measurement import check
    from semif_bento.bench.classify.reference import run_padded

    found = check(inputs, run_padded(target, inputs, batch), reference)
    run_folder.phase("control done", control=asdict(found))
    print(f"control, plain transformers in padded batches: {_render_check(found)}", flush=True)


def _measure(
    args: argparse.Namespace,
    target: "Target",
    inputs: "FrozenInputs",
    reference: "Reference",
    run_folder: "RunFolder",
) -> "Measurement":
    from semif_bento.bench.classify.measurement import measure

    identity = target.identity
    print(
        f"{identity.source} at {identity.revision}, {identity.dtype} on {identity.device}, "
        f"{target.classifier.serving_config}, batches of {args.batch}",
        flush=True,
    )

    def show(checked: "CheckedPass") -> None:
        run_folder.phase(f"after round {checked.run.round}, {checked.run.state}")
        run_folder.add_pass(checked)
        _print_pass(checked)

    return measure(target, inputs, reference, batch=args.batch, passes=args.passes, on_pass=show)


def _print_pass(checked: "CheckedPass") -> None:
    run = checked.run
    name = f"pass {run.round}" if run.round else "warm-up"
    print(
        f"  {name:<8}{run.state:<9}{run.seconds:>8.2f} s  {_render_check(checked.check)}",
        flush=True,
    )


def _render_check(check: "Check") -> str:
    agreement, audit = check.agreement, check.audit
    return (
        f"labels {agreement.labels_equal}/{agreement.rows}, max ΔP(entailment) "
        f"{agreement.max_entailment_diff:.2g}, max Δlogit {agreement.max_logit_diff:.2g}; winners "
        f"{audit.groups - len(audit.changed)}/{audit.groups}, other exact ties {len(audit.ties)}"
    )


def _print_figures(measurement: "Measurement") -> None:
    header = ("cache", "first s ", "median s ", "passes", "batch p50 ", "p90 ", "max ", "cached ")
    rows = [
        (
            figures.state,
            f"{figures.first_s:.3f}",
            f"{figures.median_s:.3f}",
            " ".join(f"{seconds:.3f}" for seconds in figures.seconds),
            f"{figures.batch_p50_s:.3f}",
            f"{figures.batch_p90_s:.3f}",
            f"{figures.batch_max_s:.3f}",
            f"{figures.cached_share:.0%}",
        )
        for figures in measurement.states
    ]
    print("\n" + render_table(header, rows))
    print(
        f"\ndisabled over cold {measurement.cold_ratio:.2f}×, over warm "
        f"{measurement.warm_ratio:.2f}×"
    )


@contextlib.contextmanager
def _settings(environment: Environment, is_tiny: bool) -> "Iterator[Settings]":
    """Give the settings; where no checkpoint is configured, the small one's, made and removed."""
    if not is_tiny:
        yield environment.with_token().settings()
        return
    from semif_bento.bench.classify.target import TINY_REVISION, write_tiny_checkpoint

    with tempfile.TemporaryDirectory(prefix="semif-nli-") as scratch:
        made = environment.with_token()
        made = made.with_value("SEMIF_NLI_MODEL", scratch, "made for this run")
        made = made.with_value("SEMIF_NLI_REVISION", TINY_REVISION, "made for this run")
        settings = made.settings()
        write_tiny_checkpoint(Path(scratch), settings.cache_dir)
        yield settings


@contextlib.contextmanager
def _watch(settings: "Settings") -> "Iterator[GpuWatch | None]":
    """Watch the card that the settings name; there is none on a CPU."""
    if settings.device == "cpu":
        yield None
        return
    from semif_bento.bench.classify.gpu_watch import GpuWatch, query_gpu
    from semif_bento.bench.classify.target import card_id

    card = card_id(settings)
    with GpuWatch(lambda: query_gpu(card)) as watch:
        yield watch


def _quiet(threads: int) -> None:
    import torch
    import transformers

    torch.set_num_threads(threads)
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()


def _arguments(args: argparse.Namespace) -> list[Any]:
    shown = ("inputs", "reference", "batch", "passes", "threads")
    return [f"{name}={getattr(args, name)}" for name in shown if getattr(args, name) is not None]
