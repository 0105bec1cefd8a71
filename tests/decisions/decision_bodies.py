"""Bodies of POST /v1/decisions: fixed ones, and random ones by the SDK's grammar."""

from random import Random
from typing import Any

Body = dict[str, Any]

PREDICATE = {"type": "predicate", "instructions": "The tea is cold."}
CHOICE = {
    "type": "choice",
    "name": "tone",
    "instructions": "What is the tone?",
    "choices": [{"value": "calm"}, {"value": True, "description": "so it is"}, {"value": "true"}],
}
SCORE = {
    "type": "score",
    "name": "grade",
    "instructions": "How good?",
    "levels": [{"label": "bad"}, {"label": "fair", "description": "drinkable"}, {"label": "good"}],
}
CALL = {"type": "function_call", "call_id": "c1", "name": "pour", "arguments": '{"cups": 1.50}'}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "poured"}


def body(**changes: Any) -> Body:
    return {
        "model": "scripted@r1",
        "input": "The tea was cold.",
        "questions": [PREDICATE],
    } | changes


def user(*parts: Any) -> Body:
    return {"role": "user", "content": list(parts)}


class Grammar:
    """Random legal bodies; the same seed makes the same ones."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def body(self) -> Body:
        whole = {"model": self.text(), "input": self.input(), "questions": self.some(self.question)}
        return whole | self.maybe(
            safety_identifier=self.text() or None,
            prompt_cache_key=self.pick("key", None),
            prompt_cache_options=self.pick(None, {}, {"ttl": "30m"}, {"mode": "explicit"}),
        )

    def input(self) -> Any:
        if self.pick(True, False):
            return self.text()
        items = self.some(self.item)
        for kind in ("function_call", "custom_tool_call"):
            if self.pick(True, False):
                at = self._random.randrange(len(items) + 1)
                items.insert(at, self.call(kind))
                items.insert(
                    self._random.randrange(at + 1, len(items) + 1),
                    self.output(f"{kind}_output", items[at]["call_id"]),
                )
        return items

    def item(self) -> Body:
        role = self.pick("user", "developer", "system", "assistant")
        parts = {"user": self.user_part, "assistant": self.assistant_part}.get(role, self.text_part)
        message = {"role": role, "content": self.text_or(parts)} | self.maybe(type="message")
        if role == "assistant":
            message |= self.maybe(phase=self.pick(None, "commentary", "final_answer"))
        return message

    def call(self, kind: str) -> Body:
        given = {"function_call": "arguments", "custom_tool_call": "input"}[kind]
        call = {"type": kind, "call_id": self.text(), "name": self.text(), given: self.text()}
        return call | self.maybe(namespace=self.pick(None, "n")) | self.tooling()

    def output(self, kind: str, call_id: str) -> Body:
        output = {"type": kind, "call_id": call_id, "output": self.text_or(self.text_part)}
        return output | self.tooling()

    def tooling(self) -> Body:
        status = self.pick(None, "in_progress", "completed", "incomplete")
        return self.maybe(id=self.pick(None, "i"), status=status)

    def text_part(self) -> Body:
        part = {"type": "input_text", "text": self.text()}
        return part | self.maybe(prompt_cache_breakpoint=self.pick(None, {"mode": "explicit"}))

    def user_part(self) -> Body:
        return self.pick(self.text_part, self.json_part)()

    def json_part(self) -> Body:
        return {"type": "input_json", "data": self.pick(self.object(), self.some(self.object))}

    def object(self, depth: int = 0) -> Body:
        values = [None, True, 1, 1.5, self.text(), [], [self.text()]]
        if depth < 3:
            values.append(self.object(depth + 1))
        return {self.text(): self.pick(*values) for _ in range(self._random.randrange(3))}

    def assistant_part(self) -> Body:
        return self.pick(
            {"type": "output_text", "text": self.text()},
            {"type": "refusal", "refusal": self.text()},
        )

    def question(self) -> Body:
        instructions: Any = self.word()
        if self.pick(True, False):
            text = {"type": "input_text", "text": self.text()}
            instructions = [text, self.pick({"type": "input_text", "text": "a"}, self.json_part())]
        named = self.maybe(name=self.text())
        match self.pick("predicate", "choice", "score"):
            case "choice":
                values = self._random.sample(["true", "false", True, False, "a", "b "], k=3)
                return {
                    "type": "choice",
                    "instructions": instructions,
                    "choices": [{"value": v} | self.described() for v in values],
                    **named,
                }
            case "score":
                levels = [{"label": self.word()} | self.described() for _ in range(self.of(2, 10))]
                return {"type": "score", "instructions": instructions, "levels": levels, **named}
            case kind:
                return {"type": kind, "instructions": instructions, **named}

    def described(self) -> Body:
        return self.maybe(description=self.text())

    def text_or(self, part: Any) -> Any:
        return self.text() if self.pick(True, False) else self.some(part)

    def some(self, make: Any) -> list[Any]:
        return [make() for _ in range(self.of(1, 4))]

    def maybe(self, **keys: Any) -> Body:
        return {key: value for key, value in keys.items() if self.pick(True, False)}

    def word(self) -> str:
        return self.text() or "w"

    def text(self) -> str:
        return "".join(self._random.choices('aé"\\{}[]:,\n 🍵<|im_end|>', k=self.of(0, 8)))

    def pick(self, *values: Any) -> Any:
        return self._random.choice(values)

    def of(self, least: int, most: int) -> int:
        return self._random.randint(least, most)
