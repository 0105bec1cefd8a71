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
from semif_bento.cli import accept, bench, calibrate, demo, doctor, pull, readme, serve
from semif_bento.errors import SemifError


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
    _add_bench(commands)
    _add_calibrate(commands)
    _add_accept(commands)
    _add_settings_table(commands)
    return parser


def _add_serve(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = _add(commands, "serve", serve.run, "serve in the foreground until Ctrl-C")
    _add_env_file(command)
    command.add_argument(
        "--host",
        default=os.environ.get("HOST") or "127.0.0.1",
        help="address to bind; the variable HOST, else 127.0.0.1",
    )
    command.add_argument(
        "--port",
        type=_port,
        default=os.environ.get("PORT") or "3000",
        help="port to bind; the variable PORT, else 3000",
    )


def _add_demo(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = _add(commands, "demo", demo.run, "start the service, ask nine decisions, stop it")
    _add_env_file(command)
    command.add_argument(
        "--timeout",
        type=float,
        default=300.0,
        metavar="SECONDS",
        help="longest wait for the service to be ready (default 300)",
    )


def _add_doctor(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    summary = "show what would start; exit code 1 when it would not"
    command = _add(commands, "doctor", doctor.run, summary)
    _add_env_file(command)
    command.add_argument("--json", action="store_true", help="print one JSON object instead")


def _add_pull(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    summary = "fill the Hugging Face cache with the configured model and verify it"
    command = _add(commands, "pull", pull.run, summary)
    _add_env_file(command)


def _add_bench(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    summary = "time scoring against SemIf's reference scorers, which must be installed"
    command = _add(commands, "bench", bench.run, summary)
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


def _add_calibrate(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    summary = "fit a workload's temperature on labelled rows, and say what it is worth"
    command = _add(commands, "calibrate", calibrate.run, summary)
    command.add_argument("--workload", required=True, type=_name, help="the name requests send")
    _add_path(
        command, "--data", "JSONL of labelled rows (default: the decisions that ship with it)"
    )
    _add_path(command, "--table", "table to put the workload into (default: OUT/calibration.json)")
    _add_examined(command, "calibration-WORKLOAD")
    command.add_argument("--force", action="store_true", help="write a fit that is in doubt")


def _add_accept(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    summary = "examine a deployment in six checks; exit code 1 when one does not pass"
    command = _add(commands, "accept", accept.run, summary)
    _add_path(command, "--rows", "JSONL of rows (default: the decisions that ship with it)")
    _add_path(command, "--reference", "JSONL of SemIf's results (default: made with fastjev)")
    command.add_argument(
        "--sample-rows",
        type=_count,
        metavar="N",
        help="rows that are scored more than once (default: all on a GPU, 16 without one)",
    )
    _add_path(command, "--against", "report.json of an earlier run, to tell what moved")
    _add_examined(command, "acceptance")
    command.add_argument("--runs", type=_runs, default=5, help="timed runs, 3 or more (default 5)")
    command.add_argument(
        "--max-p50-ms", type=float, metavar="MS", help="bar for 21 criteria over a fresh state"
    )


def _add_examined(command: argparse.ArgumentParser, directory: str) -> None:
    _add_env_file(command)
    command.add_argument("--url", help="a running service; without it the model is loaded here")
    _add_path(command, "--token-file", "the service's token (default: SEMIF_API_TOKEN)")
    _add_path(command, "--out", f"folder of the reports (default: {directory})")
    command.add_argument("--seed", type=int, default=0, help="of all that is drawn (default 0)")


def _add_path(command: argparse.ArgumentParser, name: str, help: str) -> None:
    command.add_argument(name, type=Path, metavar="PATH", help=help)


def _add_settings_table(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    summary = "write the table of settings into a Markdown file"
    command = _add(commands, "settings-table", readme.run, summary)
    command.add_argument("file", type=Path, help="file with the two markers of the table")
    command.add_argument(
        "--check", action="store_true", help="write nothing; exit code 1 when it is out of date"
    )


def _add(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    run: object,
    summary: str,
) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=summary, description=f"{summary.capitalize()}.")
    command.set_defaults(run=run)
    return command


def _add_env_file(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--env-file",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="read NAME=VALUE lines; the environment wins, a later file wins over an earlier",
    )


def _name(text: str) -> str:
    if not text or "/" in text or not text.isprintable():
        raise argparse.ArgumentTypeError("a workload's name is printable and holds no slash")
    return text


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 1_000_000:
        raise argparse.ArgumentTypeError("rows are a number from 1 to 1000000")
    return int(text)


def _runs(text: str) -> int:
    if not text.isdecimal() or not 3 <= int(text) <= 1000:
        raise argparse.ArgumentTypeError("runs are a number from 3 to 1000")
    return int(text)


def _port(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError("a port is a number from 1 to 65535")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
