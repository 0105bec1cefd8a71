"""Arguments that several commands take, and how their text is read; knows no command."""

import argparse
from pathlib import Path

Commands = argparse._SubParsersAction  # what add_subparsers returns; argparse has no public name


def add(
    commands: "Commands[argparse.ArgumentParser]",
    name: str,
    run: object,
    summary: str,
) -> argparse.ArgumentParser:
    """Add a command that `run` carries out."""
    description = f"{summary[0].upper()}{summary[1:]}."
    command = commands.add_parser(name, help=summary, description=description)
    command.set_defaults(run=run)
    return command


def add_env_file(command: argparse.ArgumentParser) -> None:
    """Add `--env-file`, which may be given several times."""
    command.add_argument(
        "--env-file",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="read NAME=VALUE lines; the environment wins, a later file wins over an earlier",
    )


def add_path(command: argparse.ArgumentParser, name: str, help: str) -> None:
    """Add an option that is a path."""
    command.add_argument(name, type=Path, metavar="PATH", help=help)


def name(text: str) -> str:
    """Read a workload's name."""
    if not text or "/" in text or not text.isprintable():
        raise argparse.ArgumentTypeError("a workload's name is printable and holds no slash")
    return text


def count(text: str) -> int:
    """Read a number of rows."""
    if not text.isdecimal() or not 1 <= int(text) <= 1_000_000:
        raise argparse.ArgumentTypeError("rows are a number from 1 to 1000000")
    return int(text)


def runs(text: str) -> int:
    """Read a number of runs of which a median is taken."""
    if not text.isdecimal() or not 3 <= int(text) <= 1000:
        raise argparse.ArgumentTypeError("runs are a number from 3 to 1000")
    return int(text)


def port(text: str) -> int:
    """Read a port."""
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError("a port is a number from 1 to 65535")
    return int(text)


def whole(text: str) -> int:
    """Read a number from 1."""
    if not text.isdecimal() or not 1 <= int(text) <= 1_000_000:
        raise argparse.ArgumentTypeError("it is a number from 1 to 1000000")
    return int(text)
