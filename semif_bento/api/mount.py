"""The routes that BentoML cannot have as its own: those by GET, and those with headers of theirs.

Knows nothing of how they are answered.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol

from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from semif_bento.api import confidence, exchange, model_list, page
from semif_bento.api.answers import Answers
from semif_bento.api.catalogue import Catalogue
from semif_bento.api.decisions.answers import Decisions
from semif_bento.api.decisions.items import ITEMS_VERSION
from semif_bento.api.decisions.questions import QUESTIONS_VERSION
from semif_bento.api.decisions.schema import DecisionsRequest
from semif_bento.api.refusal import refuse
from semif_bento.api.routes import MODEL
from semif_bento.api.systemone import questions
from semif_bento.api.systemone.answers import SystemOne
from semif_bento.api.systemone.schema import SystemOneRequest
from semif_bento.errors import RequestError

_SYSTEMONE_HEADERS = {
    "x-semif-confidence": confidence.FORMULAS,
    "x-semif-questions": questions.MAPPING_VERSION,
}
_DECISIONS_HEADERS = {
    "x-semif-confidence": confidence.FORMULAS,
    "x-semif-questions": QUESTIONS_VERSION,
    "x-semif-items": ITEMS_VERSION,
}


class Service(Protocol):
    """What the routes ask of the running service."""

    answers: Answers
    systemone: SystemOne
    decisions: Decisions
    catalogue: Catalogue


def build(service: Callable[[], Service]) -> Starlette:
    """Return the application to mount; `service` is called at each request."""

    async def health(_: Request) -> Response:
        return _to_json(service().answers.health())

    async def models(_: Request) -> Response:
        return _to_json(model_list.to_model_list(service().catalogue))

    async def systemone(request: Request) -> Response:
        record = exchange.current()
        if not isinstance(record.body, SystemOneRequest):
            raise TypeError("the body layer checks every body")
        try:
            answer = await service().systemone.answer(
                record.body, request.headers, record.arrived_s
            )
        except RequestError as error:
            return refuse(error)
        return _to_json(answer, _SYSTEMONE_HEADERS)

    async def model(_: Request) -> Response:
        try:
            return _to_json(model_list.to_model_entry(service().catalogue, exchange.current().name))
        except RequestError as error:
            return refuse(error)

    async def decisions(request: Request) -> Response:
        record = exchange.current()
        if not isinstance(record.body, DecisionsRequest):
            raise TypeError("the body layer checks every body")
        try:
            answer = await service().decisions.answer(
                record.body, request.headers, record.arrived_s
            )
        except RequestError as error:
            return refuse(error)
        return _to_json(answer, _DECISIONS_HEADERS)

    handlers: dict[str, tuple[str, Callable[[Request], Awaitable[Response]]]] = {
        "/health": ("GET", health),
        "/v1/models": ("GET", models),
        MODEL: ("GET", model),
        "/v1/systemone": ("POST", systemone),
        "/v1/decisions": ("POST", decisions),
        "/docs": ("GET", page.respond),
    }
    return Starlette(
        routes=[Route(path, call, methods=[method]) for path, (method, call) in handlers.items()]
    )


def _to_json(body: BaseModel, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse(body.model_dump(), headers=headers)
