"""The request body of OpenAI's Decisions as pydantic models, as its SDK's types describe it.

Knows nothing of HTTP, wording, or what a model can do. No unknown key, no coercion, and null only
where the SDK has it.
"""

from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, Discriminator, Field, Tag, WithJsonSchema
from pydantic_core import PydanticCustomError

from semif_bento.api.decisions.json_data import JSON_DATA_SCHEMA, find_json_fault
from semif_bento.api.schema import RULE, Wire

MAX_QUESTIONS = 400
MIN_CHOICES, MAX_CHOICES = 2, 255
MIN_LEVELS, MAX_LEVELS = 2, 10

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


_TEXT_OR_LIST = Discriminator(_by_kind, **_told_as(NO_TEXT_OR_LIST))
_TYPED = Discriminator(_by_type, **_told_as(NO_PART))
_Text = Annotated[str, Tag("~text")]


class CacheBreakpoint(Wire):
    """Where the caller would have the prompt cached. Without effect: the cache finds its own."""

    mode: Literal["explicit"]


class _Part(Wire):
    """A piece of an input item."""

    prompt_cache_breakpoint: CacheBreakpoint | None = None


def _check_json(value: Any) -> Any:
    if fault := find_json_fault(value):
        raise PydanticCustomError(RULE, "{fault}", {"fault": fault})
    return value


JsonData = Annotated[Any, AfterValidator(_check_json), WithJsonSchema(JSON_DATA_SCHEMA)]


class InputText(_Part):
    """A piece of text."""

    type: Literal["input_text"]
    text: str


class InputJson(_Part):
    """An object, or an array of objects, read as JSON text."""

    type: Literal["input_json"]
    data: JsonData


class OutputText(_Part):
    """A piece of text that the assistant wrote."""

    type: Literal["output_text"]
    text: str


class Refusal(_Part):
    """What the assistant said instead of an answer."""

    type: Literal["refusal"]
    refusal: str


class QuestionText(Wire):
    """A piece of a question's text."""

    type: Literal["input_text"]
    text: str


class QuestionJson(Wire):
    """A piece of a question as JSON."""

    type: Literal["input_json"]
    data: JsonData


_UserPart = Annotated[
    Annotated[InputText, Tag("~input_text")] | Annotated[InputJson, Tag("~input_json")], _TYPED
]
_AssistantPart = Annotated[
    Annotated[OutputText, Tag("~output_text")] | Annotated[Refusal, Tag("~refusal")], _TYPED
]
_QuestionPart = Annotated[
    Annotated[QuestionText, Tag("~input_text")] | Annotated[QuestionJson, Tag("~input_json")],
    _TYPED,
]
TextContent = Annotated[_Text | Annotated[Some[InputText], Tag("~list")], _TEXT_OR_LIST]
UserContent = Annotated[_Text | Annotated[Some[_UserPart], Tag("~list")], _TEXT_OR_LIST]
AssistantContent = Annotated[_Text | Annotated[Some[_AssistantPart], Tag("~list")], _TEXT_OR_LIST]
Instructions = Annotated[
    Annotated[Said, Tag("~text")] | Annotated[Some[_QuestionPart], Tag("~list")], _TEXT_OR_LIST
]


class _Message(Wire):
    """Something that was said."""

    type: Literal["message"] = "message"


class UserMessage(_Message):
    """What the user said: text and JSON."""

    role: Literal["user"]
    content: UserContent


class DeveloperMessage(_Message):
    """What the developer said."""

    role: Literal["developer"]
    content: TextContent


class SystemMessage(_Message):
    """What the system said."""

    role: Literal["system"]
    content: TextContent


class AssistantMessage(_Message):
    """What the assistant said: text and refusals."""

    role: Literal["assistant"]
    content: AssistantContent
    phase: Literal["commentary", "final_answer"] | None = None


Status = Literal["in_progress", "completed", "incomplete"]


class _Tooling(Wire):
    """A call of a tool, or what came of it."""

    call_id: str
    id: str | None = None
    status: Status | None = None


class FunctionCall(_Tooling):
    """The assistant calls a function."""

    type: Literal["function_call"]
    name: str
    arguments: str
    namespace: str | None = None


class FunctionCallOutput(_Tooling):
    """What a function returned."""

    type: Literal["function_call_output"]
    output: TextContent


class CustomToolCall(_Tooling):
    """The assistant calls a tool with free text."""

    type: Literal["custom_tool_call"]
    name: str
    input: str
    namespace: str | None = None


class CustomToolCallOutput(_Tooling):
    """What such a tool returned."""

    type: Literal["custom_tool_call_output"]
    output: TextContent


Item = (
    UserMessage
    | DeveloperMessage
    | SystemMessage
    | AssistantMessage
    | FunctionCall
    | FunctionCallOutput
    | CustomToolCall
    | CustomToolCallOutput
)

_Item = Annotated[
    Annotated[UserMessage, Tag("~user")]
    | Annotated[DeveloperMessage, Tag("~developer")]
    | Annotated[SystemMessage, Tag("~system")]
    | Annotated[AssistantMessage, Tag("~assistant")]
    | Annotated[FunctionCall, Tag("~function_call")]
    | Annotated[FunctionCallOutput, Tag("~function_call_output")]
    | Annotated[CustomToolCall, Tag("~custom_tool_call")]
    | Annotated[CustomToolCallOutput, Tag("~custom_tool_call_output")],
    Discriminator(_by_type_or_role, **_told_as(NO_ITEM)),
]


class _Question(Wire):
    """A question about the input; its name comes back with its answer."""

    instructions: Instructions
    name: str = ""

    @property
    def given_name(self) -> str | None:
        """The name as it was sent, None where none was; an empty one is a name."""
        return self.name if "name" in self.model_fields_set else None


class Predicate(_Question):
    """How likely is it that a statement is true?"""

    type: Literal["predicate"]


class ChoiceOption(Wire):
    """An option. Its value is typed: the string "true" and the boolean are two."""

    value: Annotated[
        Annotated[Said, Tag("~text")] | Annotated[bool, Tag("~bool")],
        Discriminator(_by_kind, **_told_as(NO_VALUE)),
    ]
    description: str = ""


class Choice(_Question):
    """Which of the options is it? Their values differ."""

    type: Literal["choice"]
    choices: Annotated[
        list[ChoiceOption], Field(min_length=MIN_CHOICES, max_length=MAX_CHOICES, fail_fast=True)
    ]


class ScoreLevel(Wire):
    """A step of a scale."""

    label: Said
    description: str = ""


class Score(_Question):
    """Where on the scale is it? The lowest level comes first."""

    type: Literal["score"]
    levels: Annotated[
        list[ScoreLevel], Field(min_length=MIN_LEVELS, max_length=MAX_LEVELS, fail_fast=True)
    ]


Question = Predicate | Choice | Score

_AnyQuestion = Annotated[
    Annotated[Predicate, Tag("~predicate")]
    | Annotated[Choice, Tag("~choice")]
    | Annotated[Score, Tag("~score")],
    _TYPED,
]


class CacheOptions(Wire):
    """How the caller would have the prompt cached. Without effect."""

    mode: Literal["implicit", "explicit"] | None = None
    ttl: Literal["30m"] = "30m"


class DecisionsRequest(Wire):
    """Body of POST /v1/decisions: an input, and the questions asked about it.

    An output of a tool has a call of the same kind and `call_id` before it.
    """

    model: str
    input: Annotated[_Text | Annotated[Some[_Item], Tag("~list")], _TEXT_OR_LIST]
    questions: Annotated[
        list[_AnyQuestion], Field(min_length=1, max_length=MAX_QUESTIONS, fail_fast=True)
    ]
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_options: CacheOptions | None = None
