"""How the input becomes the evidence that a model reads: one pure function, with a version.

Knows nothing of HTTP, questions or tokens. The result is JSON, in which a text is always a string:
whatever it says, it can neither end its item nor begin another one.

A text alone is itself, the same evidence as the same `state` on System One. Items are a list, in
order, of objects with these keys:

    message              role, phase (where it has one), content
    function_call        type, call_id, namespace (where it has one), name, arguments
    custom_tool_call     type, call_id, namespace (where it has one), name, input
    …_output             type, call_id, output

`status` stands after `type` where a call or an output is not complete. What is content or output
is a string, or a list of its parts: text is a string, JSON is itself, a refusal is an object with
the key `refusal`. A list of one text is that string. Arguments stay the text that was sent. An
item's own `id`, which nothing refers to, and cache breakpoints are left out.
"""

from collections.abc import Sequence

from semif_bento.api.decisions.input_schema import (
    AssistantMessage,
    CustomToolCall,
    CustomToolCallOutput,
    DeveloperMessage,
    FunctionCall,
    FunctionCallOutput,
    InputJson,
    InputText,
    Item,
    OutputText,
    Refusal,
    SystemMessage,
    UserMessage,
)
from semif_bento.decisions import JsonState

ITEMS_VERSION = "decisions-items-v1"

Part = InputText | InputJson | OutputText | Refusal


def to_state(given: str | Sequence[Item]) -> JsonState:
    """Return the evidence for an input: a text as it is, items as a list of objects."""
    return given if isinstance(given, str) else [_to_object(item) for item in given]


def _to_object(item: Item) -> dict[str, object]:
    match item:
        case AssistantMessage(phase=str(phase)):
            return {"role": item.role, "phase": phase, "content": _to_content(item.content)}
        case UserMessage() | DeveloperMessage() | SystemMessage() | AssistantMessage():
            return {"role": item.role, "content": _to_content(item.content)}
        case FunctionCall():
            return {**_begin(item), "name": item.name, "arguments": item.arguments}
        case CustomToolCall():
            return {**_begin(item), "name": item.name, "input": item.input}
        case FunctionCallOutput() | CustomToolCallOutput():
            return {**_begin(item), "output": _to_content(item.output)}


def _begin(
    item: FunctionCall | CustomToolCall | FunctionCallOutput | CustomToolCallOutput,
) -> dict[str, object]:
    """Return the keys that every call and every output begins with."""
    begun: dict[str, object] = {"type": item.type}
    if item.status not in (None, "completed"):
        begun["status"] = item.status
    begun["call_id"] = item.call_id
    if isinstance(item, FunctionCall | CustomToolCall) and item.namespace is not None:
        begun["namespace"] = item.namespace
    return begun


def _to_content(content: str | Sequence[Part]) -> object:
    match content:
        case str():
            return content
        case [InputText(text=text) | OutputText(text=text)]:
            return text
        case _:
            return [_to_piece(part) for part in content]


def _to_piece(part: Part) -> object:
    match part:
        case InputText(text=text) | OutputText(text=text):
            return text
        case InputJson(data=data):
            return data
        case Refusal(refusal=refusal):
            return {"refusal": refusal}
