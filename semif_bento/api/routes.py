"""The table of routes: path, methods, who may ask, what body; knows nothing of how they answer.

What is not in the table does not exist, so paths that callers make up reach neither the framework
nor its metrics.
"""

from collections.abc import Callable
from dataclasses import dataclass

from pydantic import BaseModel

from semif_bento.api import validation
from semif_bento.api.encodings import GZIP, IDENTITY, ZSTD
from semif_bento.api.nli.results import ClassifyAnswer
from semif_bento.api.nli.schema import ClassifyRequest
from semif_bento.api.results import DecisionResult, Health, SharedResponse
from semif_bento.api.schema import DecideRequest, NoBody, SharedRequest
from semif_bento.api.systemone import schema as systemone
from semif_bento.api.systemone.results import ModelList, SystemOneResponse


@dataclass(frozen=True, slots=True)
class Route:
    """One path: what it is for, its methods, whether it is open to all, its two bodies' models.

    `check` turns a parsed body into `body` or raises an InvalidRequest or a UsageError;
    `encodings` are the content encodings that a body may come in; a route that `needs_engine` is
    not found where that engine is absent.
    """

    summary: str
    methods: tuple[str, ...]
    is_open: bool = False
    body: type[BaseModel] | None = None
    answer: type[BaseModel] | None = None
    check: Callable[[type[BaseModel], object], BaseModel] = validation.check
    encodings: tuple[str, ...] = (IDENTITY,)
    needs_engine: bool = False


PROBES = ("/livez", "/readyz", "/healthz")
"""Asked every few seconds by whoever runs the process; their successes are not worth a log line."""

_READ = ("GET", "HEAD")

ROUTES: dict[str, Route] = {
    # BentoML's clients can only POST, so health answers both.
    "/health": Route(
        "What is served, and how it is", (*_READ, "POST"), is_open=True, body=NoBody, answer=Health
    ),
    **{path: Route("Probe", _READ, is_open=True) for path in PROBES},
    "/decide": Route(
        "One decision over one state",
        ("POST",),
        body=DecideRequest,
        answer=DecisionResult,
        needs_engine=True,
    ),
    "/decide/shared": Route(
        "Many decisions over one state",
        ("POST",),
        body=SharedRequest,
        answer=SharedResponse,
        needs_engine=True,
    ),
    "/classify": Route(
        "Contradiction, entailment, neutral: logits of pairs",
        ("POST",),
        body=ClassifyRequest,
        answer=ClassifyAnswer,
        needs_engine=True,
    ),
    "/v1/systemone": Route(
        "System One: questions over one state",
        ("POST",),
        body=systemone.SystemOneRequest,
        answer=SystemOneResponse,
        check=systemone.check,
        encodings=(IDENTITY, GZIP, ZSTD),
    ),
    "/v1/models": Route("System One: names of the model", _READ, answer=ModelList),
    # A browser cannot send a token with its first request; the page holds nothing and asks for it.
    "/docs": Route("A page to try a decision by hand", _READ, is_open=True),
    "/metrics": Route("Metrics for Prometheus", _READ),
    "/docs.json": Route("The OpenAPI document", _READ),
    "/schema.json": Route("What BentoML's clients read", _READ),
}


def is_systemone(path: str) -> bool:
    """Tell whether a path, known or not, is answered as System One's clients expect."""
    return path.startswith("/v1/")
