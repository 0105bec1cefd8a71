"""Short ways to ask a backend, and to wait for what comes a moment later."""

import time
from collections.abc import Callable

from models import rows

from semif_bento.backend import Backend
from semif_bento.caller import Caller
from semif_bento.decisions import DirectOutcome, ScoreRequest, ServerStatus, SharedOutcome


def request_about(state: object, decisions: int = 1, options: int = 2) -> ScoreRequest:
    asked = [
        {
            "id": f"d{index}",
            "state": state,
            "question": f"Question {index}?",
            "options": [{"id": f"o{n}", "description": f"Option {n}"} for n in range(options)],
        }
        for index in range(decisions)
    ]
    return rows.request_of(asked)


def decide(backend: Backend, state: object = "a state", **kw: int) -> DirectOutcome:
    return backend.engines["letters"].direct(request_about(state, **kw), Caller())


def decide_shared(backend: Backend, state: object = "a state", decisions: int = 3) -> SharedOutcome:
    return backend.engines["letters"].shared(request_about(state, decisions), Caller())


def servers(backend: Backend) -> tuple[ServerStatus, ...]:
    return backend.status().servers


def eventually(holds: Callable[[], object], limit_s: float = 30) -> None:
    """Wait until something holds."""
    ends_s = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < ends_s, "it never held"
        time.sleep(0.01)
