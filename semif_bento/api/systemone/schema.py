"""The request body of System One as pydantic models, checked in the recorded service's order.

Knows nothing of HTTP, limits or models. Faults come out as pydantic words them, because that is
what clients of the service read, but nothing of what was sent comes out with them. Unlike on the
native routes, unknown keys inside a question pass.
"""

from itertools import islice
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.config import JsonDict
from pydantic_core import ErrorDetails

from semif_bento.errors import InvalidShape, UsageError

MAX_CHOICES = 255
MAX_LEVELS = 10
MAX_DETAILS = 100
MOST_CRITERIA = 1000
"""More than any question may have, and enough to tell every fault that is told."""
NO_IMAGES = "Images are not supported: this model reads text only."

Text = str | dict[Any, Any] | list[Any]
"""Free text, or JSON that the model reads as text; a number or boolean alone is neither."""


def _told(**rules: Any) -> Any:
    """Return what the OpenAPI document says of a field; `questions` checks it, with other words."""
    return Field(json_schema_extra=rules)


class _Part(BaseModel):
    """Base of the models here: frozen, open to unknown keys."""

    model_config = ConfigDict(frozen=True, extra="ignore")


def _holds(key: str, schema: JsonDict) -> JsonDict:
    return {"type": "object", "required": [key], "properties": {key: schema}}


_SAID: JsonDict = {"type": ["string", "object", "array"]}
_SOMETHING: JsonDict = {
    "anyOf": [
        _holds("instructions", _SAID),
        _holds("criteria", _holds("true", _SAID)),
        _holds("criteria", _holds("false", _SAID)),
    ]
}


class NoulCriteria(_Part):
    """What yes and no mean."""

    true: Text | None = None
    false: Text | None = None


class Noul(_Part):
    """A question with the answers yes and no; it has instructions, criteria or both."""

    model_config = ConfigDict(json_schema_extra=_SOMETHING)

    type: Literal["noul"]
    instructions: Text | None = None
    criteria: NoulCriteria | None = None


class Choice(_Part):
    """A question with 1 to 255 named options, each with a description or none."""

    type: Literal["choice"]
    instructions: Text | None = None
    criteria: Annotated[dict[str, Text | None], _told(minProperties=1, maxProperties=MAX_CHOICES)]


class Score(_Part):
    """A question with 1 to 10 levels, the lowest first."""

    type: Literal["score"]
    instructions: Text | None = None
    criteria: Annotated[list[Text], Field(min_length=1), _told(maxItems=MAX_LEVELS)]


Question = Noul | Choice | Score


class SystemOneRequest(_Part):
    """Body of POST /v1/systemone: one state, and the questions asked about it."""

    # Unknown keys are refused after everything else, by `check`.
    model_config = ConfigDict(json_schema_extra={"additionalProperties": False})

    model: str
    state: Text
    questions: Annotated[
        dict[str, Annotated[Question, Field(discriminator="type")]],
        Field(min_length=1),
        _told(propertyNames={"minLength": 1}),
    ]


def check(_: type[BaseModel], value: object) -> SystemOneRequest:
    """Return a parsed body as a request.

    Raises:
        InvalidShape: it does not fit, or has no state; at most `MAX_DETAILS` faults are told.
        UsageError: an unknown kind of question or key at the top level, or images.
    """
    if isinstance(value, dict) and value.get("state", ...) is None:
        value = {key: part for key, part in value.items() if key != "state"}
    value = _shorten(value)
    try:
        # From attributes only for its words: pydantic then calls a body that is no object so.
        body = SystemOneRequest.model_validate(value, from_attributes=True)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False)
    else:
        _refuse_other_keys(value)
        return body
    _refuse_unknown_kinds(faults)
    # A missing state alone is told; beside other faults it is not.
    told = [fault for fault in faults if fault["loc"] != ("state",) or fault["type"] != "missing"]
    places = _Places(value)
    raise InvalidShape([places.detail(fault) for fault in (told or faults)[:MAX_DETAILS]])


def _shorten(value: object) -> object:
    """Cut criteria that are far too many to what is told of them; they are refused in any case.

    pydantic would describe every one of them, which takes gigabytes for a megabyte of body.
    """
    questions = value.get("questions") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(questions, dict):
        return value
    short = {name: _shorten_question(question) for name, question in questions.items()}
    return {**value, "questions": short}


def _shorten_question(question: object) -> object:
    criteria = question.get("criteria") if isinstance(question, dict) else None
    if not isinstance(question, dict) or not isinstance(criteria, list | dict):
        return question
    if len(criteria) <= MOST_CRITERIA:
        return question
    if isinstance(criteria, list):
        return {**question, "criteria": criteria[:MOST_CRITERIA]}
    return {**question, "criteria": dict(islice(criteria.items(), MOST_CRITERIA))}


def _refuse_other_keys(value: object) -> None:
    keys = set(value) if isinstance(value, dict) else set[str]()
    if "assets" in keys:
        raise UsageError(NO_IMAGES)
    if not keys <= set(SystemOneRequest.model_fields):
        raise UsageError("Invalid request.")


def _refuse_unknown_kinds(faults: list[ErrorDetails]) -> None:
    for fault in faults:
        if fault["type"] == "union_tag_invalid":
            is_box = fault.get("ctx", {}).get("tag") == "box"
            raise UsageError(NO_IMAGES if is_box else "Invalid request.")


class _Places:
    """Where faults lie in a body: what the caller named stands there as its place, from 0."""

    def __init__(self, value: object) -> None:
        questions = value.get("questions") if isinstance(value, dict) else None
        self._questions: dict[Any, Any] = questions if isinstance(questions, dict) else {}
        self._places = {name: place for place, name in enumerate(self._questions)}

    def detail(self, fault: ErrorDetails) -> dict[str, Any]:
        """Return a fault with the service's keys; no kind of fault has its input in its words."""
        path = list(fault["loc"])
        if path[:1] == ["questions"] and len(path) > 1:
            name, path[1] = path[1], self._places[path[1]]
            if path[2:4] == ["choice", "criteria"] and len(path) > 4:
                path[4] = list(self._questions[name]["criteria"]).index(path[4])
        told = {"type": fault["type"], "loc": ["body", *path], "msg": fault["msg"], "input": None}
        return told | ({"ctx": fault["ctx"]} if "ctx" in fault else {})
