"""The items of Decisions' input as pydantic models: messages, calls and outputs, and their parts.

Knows nothing of questions or wording. Which output belongs to which call is not told here.
"""

from typing import Annotated, Literal

from pydantic import Tag

from semif_bento.api.decisions.unions import (
    TEXT_OR_LIST,
    TYPED,
    TYPED_OR_ROLE,
    JsonData,
    Some,
    Text,
)
from semif_bento.api.schema import Wire


class CacheBreakpoint(Wire):
    """Where the caller would have the prompt cached. Without effect: the cache finds its own."""

    mode: Literal["explicit"]


class _Part(Wire):
    """A piece of an input item."""

    prompt_cache_breakpoint: CacheBreakpoint | None = None


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


_UserPart = Annotated[
    Annotated[InputText, Tag("~input_text")] | Annotated[InputJson, Tag("~input_json")], TYPED
]
_AssistantPart = Annotated[
    Annotated[OutputText, Tag("~output_text")] | Annotated[Refusal, Tag("~refusal")], TYPED
]
TextContent = Annotated[Text | Annotated[Some[InputText], Tag("~list")], TEXT_OR_LIST]
UserContent = Annotated[Text | Annotated[Some[_UserPart], Tag("~list")], TEXT_OR_LIST]
AssistantContent = Annotated[Text | Annotated[Some[_AssistantPart], Tag("~list")], TEXT_OR_LIST]


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

AnyItem = Annotated[
    Annotated[UserMessage, Tag("~user")]
    | Annotated[DeveloperMessage, Tag("~developer")]
    | Annotated[SystemMessage, Tag("~system")]
    | Annotated[AssistantMessage, Tag("~assistant")]
    | Annotated[FunctionCall, Tag("~function_call")]
    | Annotated[FunctionCallOutput, Tag("~function_call_output")]
    | Annotated[CustomToolCall, Tag("~custom_tool_call")]
    | Annotated[CustomToolCallOutput, Tag("~custom_tool_call_output")],
    TYPED_OR_ROLE,
]
