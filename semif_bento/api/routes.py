"""The table of routes: path, methods, who may ask, what body; knows nothing of how they answer.

What is not in the table does not exist, so paths that callers make up reach neither the framework
nor its metrics.
"""

from collections.abc import Callable
from dataclasses import dataclass

from pydantic import BaseModel

from semif_bento.api import validation
from semif_bento.api.decisions import checking as decisions
from semif_bento.api.decisions.results import DecisionsResponse
from semif_bento.api.decisions.schema import DecisionsRequest
from semif_bento.api.encodings import GZIP, IDENTITY, ZSTD
from semif_bento.api.exchange import Family
from semif_bento.api.model_list import ModelEntry, ModelList
from semif_bento.api.nli.results import ClassifyAnswer
from semif_bento.api.nli.schema import ClassifyRequest
from semif_bento.api.results import DecisionResult, Health, SharedResponse
from semif_bento.api.schema import DecideRequest, NoBody, SharedRequest
from semif_bento.api.systemone import schema as systemone
from semif_bento.api.systemone.results import SystemOneResponse


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

MODEL = "/v1/models/{model}"
"""The one route with an open end: names of models hold slashes."""

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
    "/v1/decisions": Route(
        "OpenAI's Decisions: questions about one input",
        ("POST",),
        body=DecisionsRequest,
        answer=DecisionsResponse,
        check=decisions.check,
        encodings=(IDENTITY, GZIP, ZSTD),
    ),
    "/v1/models": Route("Names of the models, for either SDK", _READ, answer=ModelList),
    MODEL: Route("One model by a name, for OpenAI's SDK", _READ, answer=ModelEntry),
    # A browser cannot send a token with its first request; the page holds nothing and asks for it.
    "/docs": Route("A page to try a decision by hand", _READ, is_open=True),
    "/metrics": Route("Metrics for Prometheus", _READ),
    "/docs.json": Route("The OpenAPI document", _READ),
    "/schema.json": Route("What BentoML's clients read", _READ),
}


def find(path: str) -> tuple[str, str] | None:
    """Return the route of a path and the name that the path ends with, "" for most.

    None where there is no such route. The braces of a route are no path.
    """
    start = MODEL.partition("{")[0]
    if path.startswith(start) and path != start:
        return MODEL, path.removeprefix(start)
    return (path, "") if path in ROUTES else None


def family_of(path: str) -> Family:
    """Tell whose clients a path, known or not, is for.

    GET /v1/models is for both SDKs; its errors are System One's, since OpenAI's SDK reads no more
    of an error than its status and, where it finds them, its keys.
    """
    if path == "/v1/decisions" or path.startswith(("/v1/decisions/", "/v1/models/")):
        return "decisions"
    return "systemone" if path.startswith("/v1/") else "native"
