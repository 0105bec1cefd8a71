"""An error's shape on the wire, one a family of routes; knows nothing of why it was raised."""

from typing import Any

from starlette.responses import JSONResponse

from semif_bento.api import exchange
from semif_bento.api.decisions import refusal as decisions
from semif_bento.api.exchange import Family
from semif_bento.api.routes import ROUTES
from semif_bento.api.systemone import refusal as systemone
from semif_bento.errors import (
    MethodNotAllowed,
    NotFound,
    Overloaded,
    RequestError,
    ScoringFailed,
    ScoringTimeout,
    Unauthorized,
)

_FOREIGN: dict[int, RequestError] = {
    404: NotFound("There is no such route."),
    405: MethodNotAllowed("The route does not take this method."),
    429: Overloaded("Too many requests are waiting; try again later."),
    504: ScoringTimeout("The request was not answered in time."),
}
_FAILED = ScoringFailed("The server failed; its log says where.")


def render(error: RequestError, family: Family) -> tuple[int, dict[str, Any]]:
    """Return the status and body that tell a client of an error, in the family's own shape."""
    match family:
        case "systemone":
            return systemone.render(error)
        case "decisions":
            return decisions.render(error)
        case "native":
            return error.status, {"error": {"code": error.code, "message": error.message}}


def refuse(error: RequestError) -> JSONResponse:
    """Return the response for `error` and note its code in the current exchange."""
    record = exchange.current()
    record.code = error.code
    headers: dict[str, str] = {}
    if error.retry_after_s is not None:
        headers["retry-after"] = str(error.retry_after_s)
    if isinstance(error, Unauthorized):
        headers["www-authenticate"] = "Bearer"
    if isinstance(error, MethodNotAllowed):
        headers["allow"] = ", ".join(ROUTES[record.route].methods)
    status, body = render(error, record.family)
    return JSONResponse(body, status, headers)


def refuse_foreign(status: int) -> JSONResponse:
    """Return our response for an error response that the framework made.

    A status that our layers should have ruled out is our fault, so it goes out as a 500.
    """
    return refuse(_FOREIGN.get(status, _FAILED))
