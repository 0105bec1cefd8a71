"""Turns a pydantic error into one plain sentence; knows nothing of where the body came from.

The sentence names the place and never quotes a value or a key that the caller chose.
"""

from typing import TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from semif_bento.api.json_paths import name_path
from semif_bento.api.schema import RULE
from semif_bento.errors import InvalidRequest

_PREDICATES = {
    "missing": "is missing",
    "string_type": "must be a string",
    "string_too_short": "must not be empty",
    "bool_type": "must be true or false",
    "int_type": "must be an integer",
    "greater_than_equal": "must be {ge} or more",
    "list_type": "must be an array",
    "literal_error": "must be one of {expected}",
    "model_type": "must be an object",
    "too_short": "must hold {min_length} or more",
    "too_long": "must hold {max_length} or fewer",
}

M = TypeVar("M", bound=BaseModel)


def check(model: type[M], value: object) -> M:
    """Return `value` as a `model`.

    Raises:
        InvalidRequest: it does not fit; the message is about the first fault in field order.
    """
    try:
        return model.model_validate(value)
    except ValidationError as error:
        message = _describe(error.errors(include_url=False, include_input=False)[0])
    raise InvalidRequest(message)


def _describe(error: ErrorDetails) -> str:
    kind, path = error["type"], error["loc"]
    if kind == "extra_forbidden":
        return f"{name_path(path[:-1])} holds a key that is not known here."
    if kind == RULE:
        return f"{name_path(path)} {error['msg']}."
    predicate = _PREDICATES[kind].format_map(error.get("ctx", {}))
    return f"{name_path(path)} {predicate}."
