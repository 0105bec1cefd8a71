"""`semif-bento settings-table`: keep a Markdown file's table of settings equal to the class.

Knows nothing of what the settings mean.
"""

import argparse
from pathlib import Path

from semif_bento.errors import StartupError
from semif_bento.settings import settings_table

BEGIN = "<!-- settings: written by `semif-bento settings-table` -->"
END = "<!-- end of settings -->"


def run(args: argparse.Namespace) -> int:
    """Write the table between the markers, or check that it stands there already.

    Raises:
        StartupError: no such file, or not exactly one pair of markers in it.
    """
    path: Path = args.file
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as exc:
        raise StartupError(f"{path} cannot be read: {exc.strerror}.") from exc
    wanted = replace_table(text, settings_table())
    if args.check:
        print(f"{path}: the table of settings is {'up to date' if text == wanted else 'old'}")
        return 0 if text == wanted else 1
    path.write_text(wanted, encoding="utf-8")
    return 0


def replace_table(text: str, table: str) -> str:
    """Return the text with what stands between the markers replaced by the table.

    Raises:
        StartupError: not exactly one pair of markers.
    """
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise StartupError("The file must hold the two markers of the settings table once each.")
    head, rest = text.split(BEGIN)
    return f"{head}{BEGIN}\n{table}\n{END}{rest.split(END)[1]}"
