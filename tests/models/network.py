"""Block the network in this process; knows nothing of who tries to use it."""

import contextlib
import socket
from collections.abc import Iterator
from unittest import mock

LOOPBACK = ("127.", "::1", "localhost")


@contextlib.contextmanager
def blocked_network() -> Iterator[list[object]]:
    """Refuse every connection and name look-up that leaves this machine, and list them."""
    tried: list[object] = []

    def guard(original, place):
        def guarded(*args, **kwargs):
            target = args[place]
            host = str(target[0] if isinstance(target, tuple) else target)
            if not host.startswith(("/", *LOOPBACK)):
                tried.append(target)
                raise OSError("the network is blocked in this test")
            return original(*args, **kwargs)

        return guarded

    with contextlib.ExitStack() as stack:
        for owner, name, place in (
            (socket.socket, "connect", 1),
            (socket.socket, "connect_ex", 1),
            (socket, "getaddrinfo", 0),
        ):
            replaced = guard(getattr(owner, name), place)
            stack.enter_context(mock.patch.object(owner, name, replaced))
        yield tried
