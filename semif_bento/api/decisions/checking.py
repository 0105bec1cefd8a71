"""Turns a parsed body into a request, or tells the first fault by its place and OpenAI's code.

Knows nothing of HTTP. A message names a place in keys of the protocol and quotes nothing.
"""

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from semif_bento.api.decisions.input_schema import (
    CustomToolCall,
    CustomToolCallOutput,
    FunctionCall,
    FunctionCallOutput,
)
from semif_bento.api.decisions.schema import Choice, DecisionsRequest, QuestionJson
from semif_bento.api.decisions.unions import NO_ITEM, NO_PART, NO_TEXT_OR_LIST, NO_VALUE, TAG
from semif_bento.api.schema import RULE
from semif_bento.errors import InvalidParameter

MISSING, WRONG_TYPE, WRONG_VALUE = "missing_required_parameter", "invalid_type", "invalid_value"
UNKNOWN_KEY, TOO_SHORT, TOO_LONG = (
    "unknown_parameter",
    "array_below_min_length",
    "array_above_max_length",
)
EMPTY_TEXT, EMPTY_LIST = "empty_string", "empty_array"
NO_IMAGES = "unsupported_content_type"

_PREDICATES = {
    "missing": ("is missing", MISSING),
    "string_type": ("must be a string", WRONG_TYPE),
    "bool_type": ("must be true or false", WRONG_TYPE),
    "list_type": ("must be an array", WRONG_TYPE),
    "model_type": ("must be an object", WRONG_TYPE),
    "literal_error": ("must be {expected}", WRONG_VALUE),
    "string_too_short": ("must not be empty", EMPTY_TEXT),
    "too_short": ("must hold {min_length} or more", TOO_SHORT),
    "too_long": ("must hold {max_length} or fewer", TOO_LONG),
    NO_TEXT_OR_LIST: ("must be a string or an array", WRONG_TYPE),
    NO_VALUE: ("must be a string, true or false", WRONG_TYPE),
    RULE: ("{fault}", WRONG_VALUE),
}
_IMAGE = "input_image"

Place = Sequence[str | int]


def check(_: type[BaseModel], value: object) -> DecisionsRequest:
    """Return a parsed body as a request.

    Raises:
        InvalidParameter: it does not fit its schema, two choices of a question are the same, or an
            output of a tool has no call before it. The first fault in field order is told.
    """
    try:
        body = DecisionsRequest.model_validate(value)
    except ValidationError as error:
        fault = _fault(error.errors(include_url=False)[0])
    else:
        _check_outputs(body)
        _check_questions(body)
        return body
    raise fault


def name_place(place: Place) -> str | None:
    """Return a place as `questions[2].choices`; None for the body itself."""
    name = ""
    for step in place:
        name += f"[{step}]" if isinstance(step, int) else "." * bool(name) + step
    return name or None


def _fault(error: ErrorDetails) -> InvalidParameter:
    kind, given = error["type"], error["input"]
    place = [step for step in error["loc"] if isinstance(step, int) or not step.startswith(TAG)]
    match kind:
        case "literal_error" if given == _IMAGE and place[-1] == "type":
            return _image(place[:-1])
        case _ if kind == NO_PART and isinstance(given, dict) and given.get("type") == _IMAGE:
            return _image(place)
        case "extra_forbidden":
            return _refusal(place[:-1], "holds a key that is not known here", UNKNOWN_KEY)
        case "too_short" if not given:
            return _refusal(place, "must not be empty", EMPTY_LIST)
        case _ if kind in (NO_ITEM, NO_PART):
            return _unknown_kind(place, kind, given)
    predicate, code = _PREDICATES[kind]
    return _refusal(place, predicate.format_map(error.get("ctx", {})), code)


def _image(place: Place) -> InvalidParameter:
    return _refusal(place, "is an image; this service reads text", NO_IMAGES)


def _unknown_kind(place: Place, error: str, given: Any) -> InvalidParameter:
    """Tell why a value is none of the objects that it might be."""
    if not isinstance(given, dict):
        return _refusal(place, "must be an object", WRONG_TYPE)
    is_message = error == NO_ITEM and given.get("type", "message") == "message"
    key = "role" if is_message else "type"
    if key not in given:
        return _refusal([*place, key], "is missing", MISSING)
    if not isinstance(given[key], str):
        return _refusal([*place, key], "must be a string", WRONG_TYPE)
    return _refusal([*place, key], "is none of those that may stand here", WRONG_VALUE)


def _check_outputs(body: DecisionsRequest) -> None:
    """Refuse an output that no call of its kind comes before."""
    called: set[tuple[str, str]] = set()
    for index, item in enumerate(body.input if isinstance(body.input, list) else ()):
        if isinstance(item, FunctionCall | CustomToolCall):
            called.add((item.type, item.call_id))
        elif isinstance(item, FunctionCallOutput | CustomToolCallOutput):
            if (item.type.removesuffix("_output"), item.call_id) in called:
                continue
            place = ["input", index, "call_id"]
            raise _refusal(place, "must be that of a call before it", WRONG_VALUE)


def _check_questions(body: DecisionsRequest) -> None:
    """Refuse instructions of nothing but empty parts, and a value that comes twice."""
    for index, question in enumerate(body.questions):
        place = ["questions", index]
        if isinstance(question.instructions, list) and not any(
            isinstance(part, QuestionJson) or part.text for part in question.instructions
        ):
            raise _refusal([*place, "instructions"], "must not be empty", EMPTY_TEXT)
        if isinstance(question, Choice):
            values = {option.value for option in question.choices}  # no boolean equals a string
            if len(values) < len(question.choices):
                predicate = "must have values that differ from each other"
                raise _refusal([*place, "choices"], predicate, WRONG_VALUE)


def _refusal(place: Place, predicate: str, code: str) -> InvalidParameter:
    name = name_place(place)
    subject = f"`{name}`" if name else "The body"
    return InvalidParameter(f"{subject} {predicate}.", param=name, kind=code)
