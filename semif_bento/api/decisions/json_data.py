"""The limits of a JSON part, as OpenAI's SDK tells them; knows nothing of requests."""

import json
from typing import Any

MAX_DEPTH = 32
MAX_VALUES = 10_000
MAX_BYTES = 256 << 10

JSON_DATA_SCHEMA: dict[str, Any] = {
    "oneOf": [
        {"type": "object"},
        {"type": "array", "minItems": 1, "items": {"type": "object"}},
    ]
}
"""What the OpenAPI document says of it."""


def find_json_fault(value: object) -> str | None:
    """Tell what is wrong with the data of a JSON part, as a predicate; None where nothing is.

    Containers are levels, the data itself the first; everything within the data is a value, be it a
    container or not; bytes are those of compact JSON in UTF-8.
    """
    rows = value if isinstance(value, list) else [value]
    if not rows or not all(isinstance(row, dict) for row in rows):
        return "must be an object or a nonempty array of objects"
    return _find_excess(value)


def _find_excess(value: object) -> str | None:
    level, depth, count = [value], 0, 0
    while level := [one for one in level if isinstance(one, dict | list)]:
        depth += 1
        if depth > MAX_DEPTH:
            return f"is nested deeper than {MAX_DEPTH} levels"
        level = [child for one in level for child in _children(one)]
        count += len(level)
        if count > MAX_VALUES:
            return f"holds more than {MAX_VALUES} values"
    if len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()) > MAX_BYTES:
        return f"is over {MAX_BYTES} bytes as compact JSON"
    return None


def _children(container: object) -> list[object]:
    if isinstance(container, dict):
        return list(container.values())
    return container if isinstance(container, list) else []
