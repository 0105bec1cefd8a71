"""The record of one HTTP request on its way through the layers, each adding what it learns.

Knows nothing of ASGI or of what the request asks. It never holds a raw path, query or header.
"""

import secrets
import time
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal

from pydantic import BaseModel

UNKNOWN_ROUTE = "-"

Family = Literal["native", "systemone", "decisions"]
"""The protocols whose errors differ: ours, TypeSafe's, OpenAI's."""


@dataclass(slots=True)
class Exchange:
    """One request: who it is, when it came, and how it went so far.

    `route` is one of ours or `UNKNOWN_ROUTE`; `family` tells whose errors the path's look like;
    `name` is what a path ends with where its route leaves that open, for the handler alone;
    `encoding` is the body's content encoding; `code` is empty until one of our own errors answers;
    `status` is 0 until the response starts. Times are seconds of `time.monotonic`.
    """

    method: str
    route: str
    family: Family = "native"
    name: str = field(default="", repr=False)
    request_id: str = field(default_factory=lambda: secrets.token_hex(16))
    arrived_s: float = field(default_factory=time.monotonic)
    trace_id: str = "-"
    body: BaseModel | None = None
    encoding: str = "identity"
    bytes_in: int = 0
    status: int = 0
    code: str = ""
    bytes_out: int = 0


_current: ContextVar[Exchange] = ContextVar("exchange")


def begin(exchange: Exchange) -> None:
    """Make `exchange` the current one for everything that this request's task starts."""
    _current.set(exchange)


def current() -> Exchange:
    """Return the exchange that the calling code serves.

    Raises:
        LookupError: called outside a request.
    """
    return _current.get()
