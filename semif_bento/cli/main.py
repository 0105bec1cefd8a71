"""The command `semif-bento`: parse, call, print, exit code; knows nothing of what commands do.

Exit codes: 0 done; 1 refused, with one line on stderr that says why; 2 wrong usage. `serve` ends
with the code of the server, 128 + N when signal N ended it.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import semif_bento
from semif_bento.cli import (
    accept,
    bench,
    bench_classify,
    calibrate,
    demo,
    doctor,
    evaluate,
    mcp,
    overlay,
    pull,
    readme,
    serve,
)
from semif_bento.cli.arguments import (
    Commands,
    add,
    add_env_file,
    add_path,
    count,
    name,
    port,
    runs,
    whole,
)
from semif_bento.engine.registry import KINDS, LETTERS
from semif_bento.errors import SemifError
from semif_bento.settings import DEFAULT_MODEL, DEFAULT_REVISION


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    args = _parser().parse_args(arguments)
    try:
        return args.run(args)
    except SemifError as exc:
        print(f"semif-bento {args.command}: {exc}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"semif-bento {args.command}: interrupted", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="semif-bento",
        description="A semantic if over HTTP: typed decisions with probabilities by one forward.",
        epilog="Exit codes: 0 done, 1 refused (the reason on stderr), 2 wrong usage.",
    )
    parser.add_argument("--version", action="version", version=semif_bento.__version__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_serve(commands)
    _add_demo(commands)
    _add_doctor(commands)
    _add_pull(commands)
    _add_overlay(commands)
    _add_bench(commands)
    _add_bench_classify(commands)
    _add_calibrate(commands)
    _add_evaluate(commands)
    _add_accept(commands)
    _add_mcp(commands)
    _add_settings_table(commands)
    return parser


def _add_serve(commands: "Commands[argparse.ArgumentParser]") -> None:
    command = add(commands, "serve", serve.run, "serve in the foreground until Ctrl-C")
    add_env_file(command)
    command.add_argument(
        "--host",
        default=os.environ.get("HOST") or "127.0.0.1",
        help="address to bind; the variable HOST, else 127.0.0.1",
    )
    command.add_argument(
        "--port",
        type=port,
        default=os.environ.get("PORT") or "3000",
        help="port to bind; the variable PORT, else 3000",
    )


def _add_demo(commands: "Commands[argparse.ArgumentParser]") -> None:
    command = add(commands, "demo", demo.run, "start the service, ask nine decisions, stop it")
    add_env_file(command)
    command.add_argument(
        "--timeout",
        type=float,
        default=300.0,
        metavar="SECONDS",
        help="longest wait for the service to be ready (default 300)",
    )


def _add_doctor(commands: "Commands[argparse.ArgumentParser]") -> None:
    summary = "show what would start; exit code 1 when it would not"
    command = add(commands, "doctor", doctor.run, summary)
    add_env_file(command)
    command.add_argument("--json", action="store_true", help="print one JSON object instead")


def _add_pull(commands: "Commands[argparse.ArgumentParser]") -> None:
    summary = "fill the Hugging Face cache with the configured model and verify it"
    command = add(commands, "pull", pull.run, summary)
    add_env_file(command)


def _add_overlay(commands: "Commands[argparse.ArgumentParser]") -> None:
    summary = "link a checkpoint into a folder, with the files it lacks from its base model"
    command = add(commands, "overlay", overlay.run, summary)
    command.add_argument("checkpoint", type=Path, metavar="CHECKPOINT", help="its directory")
    command.add_argument("directory", type=Path, metavar="DIR", help="new or empty")
    command.add_argument("--base", default=DEFAULT_MODEL, help=f"default {DEFAULT_MODEL}")
    command.add_argument(
        "--base-revision", default=DEFAULT_REVISION, help=f"default {DEFAULT_REVISION}"
    )


def _add_bench(commands: "Commands[argparse.ArgumentParser]") -> None:
    summary = "time scoring against SemIf's reference scorers, which must be installed"
    command = add(commands, "bench", bench.run, summary)
    models = ("smollm2", "tiny-hybrid")
    command.add_argument("--models", nargs="+", choices=models, default=models, metavar="MODEL")
    command.add_argument("--dtype", choices=("bfloat16", "float32"), default="bfloat16")
    command.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    command.add_argument("--threads", type=int, default=1, help="CPU threads (default 1)")
    command.add_argument("--repeats", type=int, default=3, help="timed rounds a cell (default 3)")
    command.add_argument(
        "--budget-mib", type=int, default=512, help="byte budget of branches in MiB (default 512)"
    )
    command.add_argument(
        "--branch-attention",
        choices=("auto", "cascade", "views"),
        default="auto",
        help="how branches read a shared state (default auto)",
    )
    command.add_argument("--quick", action="store_true", help="three sizes instead of twelve")
    command.add_argument("--no-http", action="store_true", help="leave the HTTP overhead out")
    command.add_argument(
        "--calls", type=int, default=50, help="HTTP calls for the overhead (default 50)"
    )


def _add_bench_classify(commands: "Commands[argparse.ArgumentParser]") -> None:
    summary = "hold the NLI engine against plain transformers, on a small checkpoint by default"
    command = add(commands, "bench-classify", bench_classify.run, summary)
    add_env_file(command)
    add_path(command, "--inputs", "JSONL of pairs (default: 303 made-up ones in 100 groups)")
    add_path(command, "--write-inputs", "freeze the pairs into this file, and stop")
    add_path(command, "--reference", "reference of an earlier run (default: made anew)")
    add_path(command, "--out", "new folder for the run's record, the reference and all logits")
    add_path(command, "--profiles", "TOML of settings to sweep, each in a process of its own")
    command.add_argument("--batch", type=whole, default=32, help="pairs a call (default 32)")
    command.add_argument(
        "--passes", type=runs, default=3, help="measured passes, 3 or more (default 3)"
    )
    command.add_argument("--threads", type=whole, default=1, help="CPU threads (default 1)")
    command.add_argument(
        "--control", action="store_true", help="also run the untouched model in padded batches"
    )
    command.add_argument(
        "--bars", action="store_true", help="exit code 1 when a ratio is under its bar"
    )


def _add_calibrate(commands: "Commands[argparse.ArgumentParser]") -> None:
    summary = "fit a workload's temperature on labelled rows, and say what it is worth"
    command = add(commands, "calibrate", calibrate.run, summary)
    command.add_argument("--workload", required=True, type=name, help="the name requests send")
    command.add_argument(
        "--engine",
        choices=tuple(KINDS),
        default=LETTERS.name,
        help=f"whose temperature it is (default {LETTERS.name})",
    )
    add_path(command, "--data", "JSONL of labelled rows (default: the decisions that ship with it)")
    add_path(command, "--table", "table to put the workload into (default: OUT/calibration.json)")
    _add_target(command, "calibration-WORKLOAD")
    command.add_argument("--force", action="store_true", help="write a fit that is in doubt")


def _add_evaluate(commands: "Commands[argparse.ArgumentParser]") -> None:
    summary = "tell how good an engine's answers are on labelled rows, question by question"
    command = add(commands, "evaluate", evaluate.run, summary)
    rows = command.add_mutually_exclusive_group()
    rows.add_argument(
        "--data",
        type=Path,
        metavar="PATH",
        help="JSONL of labelled rows (default: the decisions that ship with it)",
    )
    rows.add_argument(
        "--typed", action="store_true", help="ask the typed questions that ship with it instead"
    )
    rows.add_argument(
        "--sys1bench",
        action="store_true",
        help="ask the canary set of the benchmark sys1bench, which must be installed",
    )
    command.add_argument(
        "--engine",
        action="append",
        choices=tuple(KINDS),
        help="engine to ask; may be given several times (default: all that there are)",
    )
    command.add_argument(
        "--limit", type=count, metavar="N", help="most rows of a question (default: all)"
    )
    _add_target(command, evaluate.DIRECTORY)


def _add_accept(commands: "Commands[argparse.ArgumentParser]") -> None:
    summary = "examine a deployment in six checks; exit code 1 when one does not pass"
    command = add(commands, "accept", accept.run, summary)
    add_path(command, "--rows", "JSONL of rows (default: the decisions that ship with it)")
    add_path(command, "--reference", "JSONL of SemIf's results (default: made with fastjev)")
    command.add_argument(
        "--sample-rows",
        type=count,
        metavar="N",
        help="rows that are scored more than once (default: all on a GPU, 16 without one)",
    )
    add_path(command, "--against", "report.json of an earlier run, to tell what moved")
    _add_target(command, "acceptance")
    command.add_argument("--runs", type=runs, default=5, help="timed runs, 3 or more (default 5)")
    command.add_argument(
        "--max-p50-ms", type=float, metavar="MS", help="bar for 21 criteria over a fresh state"
    )


def _add_mcp(commands: "Commands[argparse.ArgumentParser]") -> None:
    summary = "offer a running service's decisions as tools, by MCP over standard input and output"
    command = add(commands, "mcp", mcp.run, summary)
    command.add_argument("--url", default="http://127.0.0.1:3000", help="the running service")
    add_path(command, "--token-file", "the service's token (default: SEMIF_API_TOKEN)")
    command.add_argument("--model", help="a name from GET /v1/models (default: its first)")


def _add_target(command: argparse.ArgumentParser, directory: str) -> None:
    add_env_file(command)
    command.add_argument("--url", help="a running service; without it the model is loaded here")
    add_path(command, "--token-file", "the service's token (default: SEMIF_API_TOKEN)")
    add_path(command, "--out", f"folder of the reports (default: {directory})")
    command.add_argument("--seed", type=int, default=0, help="of all that is drawn (default 0)")


def _add_settings_table(commands: "Commands[argparse.ArgumentParser]") -> None:
    summary = "write the table of settings into a Markdown file"
    command = add(commands, "settings-table", readme.run, summary)
    command.add_argument("file", type=Path, help="file with the two markers of the table")
    command.add_argument(
        "--check", action="store_true", help="write nothing; exit code 1 when it is out of date"
    )


if __name__ == "__main__":
    sys.exit(main())
