"""What an error looks like on System One's routes, as recorded from the service.

Knows nothing of why it was raised. Where nothing was recorded, it is our own code and sentence in
the service's `detail`, where its clients look for them.
"""

from typing import Any

from semif_bento.errors import (
    InvalidRequest,
    InvalidShape,
    MalformedJson,
    MethodNotAllowed,
    NotFound,
    OutOfMemory,
    PromptTooLong,
    RequestError,
    TokenMissing,
    Unauthorized,
    UsageError,
)

OVERLOADED = 529
"""Status of a server that could answer another time; clients retry on it."""


def render(error: RequestError) -> tuple[int, dict[str, Any]]:
    """Return the status and body for an error."""
    status, detail = _render(error)
    return status, {"detail": detail}


def _render(error: RequestError) -> tuple[int, Any]:
    match error:
        case UsageError(is_bare=True):
            return 400, error.message
        case PromptTooLong():
            return 400, _typed("max_tokens_exceeded", error)
        case TokenMissing():
            return 403, _typed("authentication_error", error)
        case Unauthorized():
            return 401, _typed("authentication_error", error)
        case NotFound():
            return 404, "Not Found"
        case MethodNotAllowed():
            return 405, "Method Not Allowed"
        case InvalidRequest():
            return 422, _faults(error)
        case OutOfMemory():
            return OVERLOADED, _typed(error.code, error)
        case _:
            return error.status, _typed(error.code, error)


def _typed(error_type: str, error: RequestError) -> dict[str, str]:
    return {"error_type": error_type, "message": error.message}


def _faults(error: InvalidRequest) -> list[dict[str, Any]]:
    match error:
        case InvalidShape():
            return list(error.details)
        case MalformedJson():
            return [_unread(["body", error.position], "JSON decode error", error.reason)]
        case _:
            return [_unread(["body"], error.message, error.message)]


def _unread(loc: list[str | int], message: str, reason: str) -> dict[str, Any]:
    """Return the one fault of a body that has not been read as JSON, or not by our rules."""
    return {
        "type": "json_invalid",
        "loc": loc,
        "msg": message,
        "input": {},
        "ctx": {"error": reason},
    }
