"""How pydantic tells the members of Decisions' unions apart, so that a fault has one place.

Knows nothing of what the members are.
"""

from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, Discriminator, Field, Tag, WithJsonSchema
from pydantic_core import PydanticCustomError

from semif_bento.api.decisions.json_data import JSON_DATA_SCHEMA, find_json_fault
from semif_bento.api.schema import RULE

TAG = "~"
"""Begins what pydantic puts into a place to name a member of a union; no key of ours begins so."""
NO_ITEM, NO_PART, NO_TEXT_OR_LIST, NO_VALUE = "no_item", "no_part", "no_text_or_list", "no_value"
"""Error types of a value that is no member of its union."""

T = TypeVar("T")
# One fault is told, so a list may stop at its first: a megabyte of faults would take gigabytes.
Some = Annotated[list[T], Field(min_length=1, fail_fast=True)]
Said = Annotated[str, Field(min_length=1)]


def _by_kind(value: object) -> str | None:
    kinds: dict[type, str] = {str: "~text", bool: "~bool", list: "~list"}
    return kinds.get(type(value))


def _by_type(value: object) -> str | None:
    return _tag(value.get("type")) if isinstance(value, dict) else None


def _by_type_or_role(value: object) -> str | None:
    """Name an input item: a message by its role, anything else by its type."""
    if not isinstance(value, dict):
        return None
    kind = value.get("type", "message")
    return _tag(value.get("role") if kind == "message" else kind)


def _tag(name: object) -> str | None:
    return TAG + name if isinstance(name, str) else None


def _told_as(error: str) -> dict[str, Any]:
    return {"custom_error_type": error, "custom_error_message": error}


TEXT_OR_LIST = Discriminator(_by_kind, **_told_as(NO_TEXT_OR_LIST))
TEXT_OR_BOOL = Discriminator(_by_kind, **_told_as(NO_VALUE))
TYPED = Discriminator(_by_type, **_told_as(NO_PART))
TYPED_OR_ROLE = Discriminator(_by_type_or_role, **_told_as(NO_ITEM))
Text = Annotated[str, Tag("~text")]


def _check_json(value: Any) -> Any:
    if fault := find_json_fault(value):
        raise PydanticCustomError(RULE, "{fault}", {"fault": fault})
    return value


JsonData = Annotated[Any, AfterValidator(_check_json), WithJsonSchema(JSON_DATA_SCHEMA)]
