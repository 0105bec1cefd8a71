"""Strict JSON: bytes in, a Python value out, or an error that names the place.

Knows nothing of schemas. Integers keep all their digits; a float comes out as Python reads it, so
that `json.dumps` writes it into the prompt as SemIf does.
"""

import json
import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any, NoReturn

from semif_bento.api.json_paths import name_key, name_path, spell_path
from semif_bento.errors import InvalidParameter, InvalidRequest, MalformedJson

MAX_DEPTH = 100
MAX_INTEGER_DIGITS = 4300

# A string (or what is left of an unterminated one) is one match, so brackets in it don't count.
# Possessive, and matching to the end in any case: the scan is linear whatever the bytes are.
_STRING_OR_BRACKET = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")


def parse(body: bytes) -> object:
    """Return the value of a JSON text in UTF-8, with or without a byte order mark.

    Raises:
        MalformedJson: not JSON.
        InvalidRequest: not UTF-8, nested deeper than `MAX_DEPTH`; or somewhere a
            duplicate key, `NaN`, an infinity, an overflowing float, a lone surrogate, or an
            integer over `MAX_INTEGER_DIGITS` digits. The message names the place and quotes
            nothing that the caller wrote.
    """
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"The body is not UTF-8 at byte {error.start}.") from None
    _check_depth(text)
    try:
        value = json.loads(
            text,
            object_pairs_hook=_read_object,
            parse_constant=_read_constant,
            parse_float=_read_float,
            parse_int=_read_integer,
        )
    except json.JSONDecodeError as error:
        message = f"The body is not JSON at line {error.lineno}, column {error.colno}."
        raise MalformedJson(message, reason=error.msg, position=error.pos) from None
    _check(value, [])
    return value


@dataclass(frozen=True, slots=True)
class _Fault:
    """Stands in the parsed value where something is wrong, until the walk can name the place."""

    reason: str
    key: str | None = None


def _check_depth(text: str) -> None:
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return
    depth = 0
    for match in _STRING_OR_BRACKET.finditer(text):
        if match[0] in "[{":
            depth += 1
        elif match[0] in "]}":
            depth -= 1
        if depth > MAX_DEPTH:
            raise InvalidRequest(
                f"The body is nested deeper than {MAX_DEPTH} levels at character {match.start()}."
            )


def _read_object(pairs: list[tuple[str, Any]]) -> dict[str, Any] | _Fault:
    value = dict(pairs)
    if len(value) == len(pairs):
        return value
    counts = Counter(key for key, _ in pairs)
    return _Fault("holds a key twice", next(key for key, n in counts.items() if n > 1))


def _read_constant(_: str) -> _Fault:
    return _Fault("is not a finite number")


def _read_float(text: str) -> float | _Fault:
    value = float(text)
    return value if math.isfinite(value) else _Fault("is not a finite number")


def _read_integer(text: str) -> int | _Fault:
    if len(text.lstrip("-")) > MAX_INTEGER_DIGITS:
        return _Fault(f"is an integer of more than {MAX_INTEGER_DIGITS} digits")
    return int(text)


def _check(value: object, path: list[str | int]) -> None:
    """Raise for the first fault in document order; `path` leads to `value`."""
    if isinstance(value, str):
        if _SURROGATE.search(value):
            _refuse(path, "holds a lone surrogate")
    elif isinstance(value, _Fault):
        _refuse(path, value.reason, value.key)
    elif isinstance(value, dict):
        for key, child in value.items():
            if _SURROGATE.search(key):
                _refuse(path, "holds a key with a lone surrogate")
            path.append(key)
            _check(child, path)
            path.pop()
    elif isinstance(value, list):
        for index, child in enumerate(value):
            path.append(index)
            _check(child, path)
            path.pop()


def _refuse(path: list[str | int], reason: str, key: str | None = None) -> NoReturn:
    name = key and name_key(path, key)
    detail = f": `{name}`" if name else ""
    message = f"{name_path(path)} {reason}{detail}."
    raise InvalidParameter(message, param=spell_path(path) or None, kind="invalid_value")
