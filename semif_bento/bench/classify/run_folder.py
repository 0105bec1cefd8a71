"""The folder of a run: what is going on, what was measured, every pass's logits.

Knows nothing of what is measured. `run.json` is replaced whole each time, so that a reader always
finds one that holds together.
"""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from semif_bento.bench.classify.measurement import CheckedPass
from semif_bento.errors import StartupError

RUN, PASSES, INPUTS, REFERENCE = "run.json", "passes.jsonl", "inputs.jsonl", "reference.json"
DONE, FAILED = "done", "failed"


class RunFolder:
    """Writes a run's folder; without one it keeps nothing.

    Args:
        directory: must be new or empty.

    Raises:
        StartupError: the folder holds something already, or cannot be made.
    """

    def __init__(self, directory: Path | None) -> None:
        self.directory = directory
        self._facts: dict[str, Any] = {"phase": "starting", "pid": os.getpid(), "completed": []}
        if directory:
            _make_new(directory)
            self._write()

    def path(self, name: str) -> Path | None:
        """Return where a file of the run goes, or None when nothing is kept."""
        return self.directory / name if self.directory else None

    def phase(self, phase: str, **facts: Any) -> None:
        """Tell what is going on now, and facts that are known from now on."""
        self._facts |= {"phase": phase, **facts}
        self._write()

    def complete(self, entry: dict[str, Any]) -> None:
        """Add a completed measurement."""
        self._facts["completed"].append(entry)
        self._write()

    def add_pass(self, checked: CheckedPass) -> None:
        """Keep a pass: all of it with its logits, and without them what `run.json` shows."""
        line = asdict(checked)
        if self.directory:
            with (self.directory / PASSES).open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(line) + "\n")
        del line["run"]["logits"]
        self.complete(line)

    def _write(self) -> None:
        if self.directory is None:
            return
        path = self.directory / RUN
        fresh = path.with_suffix(".fresh")
        fresh.write_text(json.dumps(self._facts, indent=1) + "\n", encoding="utf-8")
        fresh.replace(path)


def _make_new(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        is_empty = next(directory.iterdir(), None) is None
    except OSError as exc:
        raise StartupError(f"{directory} cannot be made: {type(exc).__name__}.") from exc
    if not is_empty:
        raise StartupError(f"{directory} holds something already; a run's folder must be new.")
