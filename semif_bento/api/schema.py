"""The request bodies as pydantic models: no unknown key, no coercion, no null.

Knows nothing of bytes, HTTP or scoring.
"""

from typing import Annotated, Any, Protocol, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from semif_bento.engine.registry import KINDS
from semif_bento.protocol import MAX_OPTIONS, MIN_OPTIONS

RULE = "semif_rule"
"""Error type of the rules below; their messages are whole predicates without caller's text."""


class Wire(BaseModel):
    """Base of every model here: strict, frozen, closed, and silent about its input."""

    model_config = ConfigDict(
        strict=True, frozen=True, extra="forbid", hide_input_in_errors=True, protected_namespaces=()
    )


def _refuse_null(value: Any) -> Any:
    if value is None:
        raise PydanticCustomError(RULE, "must be a string")
    return value


def _check_state(value: Any) -> Any:
    if not isinstance(value, str | dict | list) or not value:
        raise PydanticCustomError(RULE, "must be a nonempty string, object or array")
    return value


class _HasId(Protocol):
    @property
    def id(self) -> str: ...


T = TypeVar("T", bound=_HasId)


def _check_ids(items: list[T]) -> list[T]:
    if len({item.id for item in items}) < len(items):
        raise PydanticCustomError(RULE, "must have ids that differ from each other")
    return items


Name = Annotated[str, Field(min_length=1)]

# oneOf, because BentoML keeps only the first member of an anyOf in what its clients read.
State = Annotated[
    Any,
    AfterValidator(_check_state),
    WithJsonSchema(
        {
            "oneOf": [
                {"type": "string", "minLength": 1},
                {"type": "object", "minProperties": 1},
                {"type": "array", "minItems": 1, "items": {}},
            ]
        }
    ),
]


# exclude_if keeps null off the wire where BentoML's clients dump a whole model.
OptionalText = Annotated[
    str | None,
    BeforeValidator(_refuse_null),
    WithJsonSchema({"type": "string"}),
    Field(exclude_if=lambda value: value is None),
]


class OptionBody(Wire):
    """One answer offered: the id is the caller's, the description goes to the model.

    A label is what the answer is called, for engines that read one; without, they read the id.
    """

    id: str
    description: str
    label: OptionalText = None


Options = Annotated[
    list[OptionBody],
    Field(min_length=MIN_OPTIONS, max_length=MAX_OPTIONS),
    AfterValidator(_check_ids),
]


class DecisionBody(Wire):
    """A question with its options, in the order of their letters."""

    id: Name
    question: Name
    options: Options


FORMER_ENGINES = {"letter": "letters"}
"""What engines were called before; still understood."""


def _check_engine(value: Any) -> str:
    value = FORMER_ENGINES.get(value, value) if isinstance(value, str) else value
    if not isinstance(value, str) or value not in KINDS:
        raise PydanticCustomError(RULE, "must be one of {names}", {"names": ", ".join(KINDS)})
    return value


Engine = Annotated[
    str | None,
    BeforeValidator(_check_engine),
    WithJsonSchema({"type": "string", "enum": list(KINDS)}),
    Field(exclude_if=lambda value: value is None),
]


class DecideRequest(Wire):
    """Body of POST /decide: one row, and how to answer it."""

    id: Name
    state: State
    question: Name
    options: Options
    workload: OptionalText = None
    diagnostics: bool = False
    engine: Engine = None


class SharedRequest(Wire):
    """Body of POST /decide/shared: one state, and the decisions asked about it."""

    state: State
    decisions: Annotated[
        list[DecisionBody], Field(min_length=1, fail_fast=True), AfterValidator(_check_ids)
    ]
    workload: OptionalText = None
    diagnostics: bool = False
    engine: Engine = None


class NoBody(Wire):
    """Body of POST /health: nothing, or an empty object."""
