"""Servers that run for as long as a block of code."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from live import Server


@contextlib.contextmanager
def running(home: Path, **options: str) -> Iterator[Server]:
    started = Server(home, **options)
    try:
        yield started.wait_until_ready()
    finally:
        assert started.stop() == 0
