"""The table of routes: path, methods, who may ask, what body; knows nothing of how they answer.

What is not in the table does not exist, so paths that callers make up reach neither the framework
nor its metrics.
"""

from dataclasses import dataclass

from pydantic import BaseModel

from semif_bento.api.schema import DecideRequest, NoBody, SharedRequest


@dataclass(frozen=True, slots=True)
class Route:
    """One path: its methods, whether it answers without a token, and its body's model."""

    methods: tuple[str, ...]
    is_open: bool = False
    body: type[BaseModel] | None = None


PROBES = ("/livez", "/readyz", "/healthz")
"""Asked every few seconds by whoever runs the process; their successes are not worth a log line."""

_READ = ("GET", "HEAD")

ROUTES: dict[str, Route] = {
    # BentoML's clients can only POST, so health answers both.
    "/health": Route((*_READ, "POST"), is_open=True, body=NoBody),
    **{path: Route(_READ, is_open=True) for path in PROBES},
    "/decide": Route(("POST",), body=DecideRequest),
    "/decide/shared": Route(("POST",), body=SharedRequest),
    "/metrics": Route(_READ),
    "/docs.json": Route(_READ),
    "/schema.json": Route(_READ),
}
