"""A file that a test makes when a scripted engine may go on; knows nothing of engines."""

import time
from collections.abc import Callable
from pathlib import Path

STEP_S = 0.02
LONGEST_WAIT_S = 120
"""For a test that failed and makes no file."""


def wait_for_file(path: str, meanwhile: Callable[[], None] = lambda: None) -> None:
    """Return when there is such a file; `<path>.waits` tells that somebody waits for it."""
    Path(f"{path}.waits").touch()
    ends_s = time.monotonic() + LONGEST_WAIT_S
    while not Path(path).exists():
        if time.monotonic() > ends_s:
            raise TimeoutError
        time.sleep(STEP_S)
        meanwhile()
