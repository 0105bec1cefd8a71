"""The request body of /classify as a pydantic model: pairs, or ids, or rendered texts.

Knows nothing of HTTP, templates or scoring.
"""

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    WithJsonSchema,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError

from semif_bento.api.schema import RULE, Name, Wire

KINDS = ("pairs", "input_ids", "text")


def _refuse_null(value: Any) -> Any:
    if value is None:
        raise PydanticCustomError(RULE, "must not be null")
    return value


def _check_texts(value: Any) -> Any:
    texts = value if isinstance(value, list) else [value]
    if not texts or not all(isinstance(text, str) and text for text in texts):
        raise PydanticCustomError(RULE, "must be a nonempty string, or an array of those")
    return value


def _refuse_images(value: Any) -> Any:
    if value is not None and not (
        isinstance(value, list) and set(map(type, value)) == {type(None)}
    ):
        raise PydanticCustomError(RULE, "must be null: this model reads text only")
    return None


class PairBody(Wire):
    """A premise and a hypothesis; surrounding white space says nothing."""

    premise: Name
    hypothesis: Name


def _only(schema: dict[str, Any]) -> Any:
    return WithJsonSchema(schema)


Absent: Any = Field(default=None, exclude_if=lambda value: value is None)


@dataclass(frozen=True, slots=True)
class _NotNull:
    """Keeps the None that stands for an absent key out of every document: null is refused."""

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return handler(schema)["anyOf"][0]


# The first fault is told and no other, so none is looked for: a body may hold 300,000 of them.
TokenIds = Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1, fail_fast=True)]
Pairs = Annotated[
    Annotated[list[PairBody], Field(min_length=1, fail_fast=True)] | None,
    BeforeValidator(_refuse_null),
    _NotNull(),
]
Ids = Annotated[
    Annotated[list[TokenIds], Field(min_length=1, fail_fast=True)] | None,
    BeforeValidator(_refuse_null),
    _NotNull(),
]
Texts = Annotated[
    Any,
    BeforeValidator(_check_texts),
    _only(
        {
            "oneOf": [
                {"type": "string", "minLength": 1},
                {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}},
            ]
        }
    ),
]
NoImages = Annotated[
    Any,
    BeforeValidator(_refuse_images),
    _only(
        {"oneOf": [{"type": "null"}, {"type": "array", "minItems": 1, "items": {"type": "null"}}]}
    ),
]


class ClassifyRequest(Wire):
    """Body of POST /classify: exactly one of `pairs`, `input_ids` and `text`.

    `text` is what SGLang's clients send: texts in which premise and hypothesis stand already.
    `image_data`, which they may send along, must hold nothing.
    """

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": [kind]} for kind in KINDS]})

    pairs: Pairs = Absent
    input_ids: Ids = Absent
    text: Texts = Absent
    image_data: NoImages = Absent

    @model_validator(mode="after")
    def _check_kind(self) -> "ClassifyRequest":
        given = [kind for kind in KINDS if getattr(self, kind) is not None]
        if len(given) != 1:
            raise PydanticCustomError(RULE, "must have one of pairs, input_ids and text")
        return self

    def size(self) -> int:
        """Return how many inputs there are."""
        given = self.pairs or self.input_ids or self.text
        return 1 if isinstance(given, str) else len(given or ())
