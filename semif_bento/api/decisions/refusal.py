"""What an error looks like to OpenAI's SDK; knows nothing of why it was raised.

The SDK makes its exceptions from the status, and tries 429 and everything from 500 on again.
"""

from typing import Any

from semif_bento.errors import (
    InvalidParameter,
    InvalidRequest,
    PromptTooLong,
    RequestError,
    Unauthorized,
    UnknownModel,
    UsageError,
)

OF_CALLER, OF_LIMITS, OF_SERVER = "invalid_request_error", "rate_limit_error", "server_error"


def render(error: RequestError) -> tuple[int, dict[str, Any]]:
    """Return the status and body for an error."""
    match error:
        case UnknownModel():  # its own message may repeat the name
            message = "No model goes by that name; GET /v1/models lists those that do."
            return 404, _body(message, OF_CALLER, "model_not_found", "model")
        case UsageError():
            return 400, _body(error.message, OF_CALLER, "invalid_value")
        case InvalidParameter():
            return 400, _body(error.message, OF_CALLER, error.kind, error.param)
        case PromptTooLong():
            return 400, _body(error.message, OF_CALLER, "context_length_exceeded", "input")
        case InvalidRequest():
            return 400, _body(error.message, OF_CALLER, error.code)
        case Unauthorized():
            return 401, _body(error.message, OF_CALLER, "invalid_api_key")
        case _:
            return error.status, _body(error.message, _type(error.status), error.code)


def _type(status: int) -> str:
    if status == 429:
        return OF_LIMITS
    return OF_SERVER if status >= 500 else OF_CALLER


def _body(message: str, kind: str, code: str, param: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}
