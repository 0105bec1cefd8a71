"""Ports for the servers of tests, which are named before their server binds them.

They lie below those that the system gives to clients, and each worker of pytest has its own, so
nobody takes one in between.
"""

import itertools
import os
import random
import socket

FIRST, EACH, WORKERS = 20_000, 1_000, 12

_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % WORKERS
_NEXT = itertools.count(random.randrange(EACH))


def free_port() -> int:
    """Return a loopback port that nothing listens on, and that was not returned lately."""
    for offset in itertools.islice(_NEXT, EACH):
        port = FIRST + _WORKER * EACH + offset % EACH
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free")
