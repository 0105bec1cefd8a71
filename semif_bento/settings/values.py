"""How the text of a setting becomes a value; knows nothing of which settings there are.

Every parser raises ValueError with a predicate ("must be …") that never repeats a secret.
"""

import difflib
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import urlsplit


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """Return the end of a sentence that names what a misspelled name is close to, or nothing."""
    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]}" if close else ""


def integer(low: int, high: int) -> Callable[[str], int]:
    """Return a parser of whole numbers from `low` to `high`."""

    def parse(text: str) -> int:
        if not re.fullmatch(r"[+-]?[0-9]{1,18}", text):
            raise ValueError(f"must be a whole number from {low} to {high}")
        if not low <= int(text) <= high:
            raise ValueError(f"must be from {low} to {high}, not {int(text)}")
        return int(text)

    return parse


def number(low: float, high: float) -> Callable[[str], float]:
    """Return a parser of finite numbers over `low` and up to `high`."""

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise ValueError(f"must be a number over {low:g} and up to {high:g}") from None
        if not math.isfinite(value) or not low < value <= high:
            raise ValueError(f"must be over {low:g} and up to {high:g}, not {value:g}")
        return value

    return parse


def one_of(*allowed: str) -> Callable[[str], str]:
    """Return a parser that takes these words alone."""

    def parse(text: str) -> str:
        if text not in allowed:
            raise ValueError(f"must be one of {', '.join(allowed)}, not {text!r}")
        return text

    return parse


def boolean(text: str) -> bool:
    """Return whether a text says true; it must say `true` or `false`."""
    if text not in ("true", "false"):
        raise ValueError(f"must be true or false, not {text!r}")
    return text == "true"


def names(text: str) -> tuple[str, ...]:
    """Return names that were separated by commas and differ from each other."""
    found = tuple(name.strip() for name in text.split(","))
    if not all(found) or len(set(found)) < len(found):
        raise ValueError("must be names that differ, separated by commas")
    return found


def base_urls(text: str) -> tuple[str, ...]:
    """Return http or https base URLs that were separated by commas, without a slash at their end.

    What is wrong with one may be a password in it, so none is ever repeated.
    """
    urls = tuple(url.strip().rstrip("/") for url in text.split(","))
    if not all(map(_is_base_url, urls)) or len(set(urls)) < len(urls):
        raise ValueError(
            "must be http or https base URLs that differ, separated by commas, without "
            "credentials, query or fragment"
        )
    return urls


def _is_base_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        # Reading the port raises ValueError where it is no number.
        is_place = bool(parts.hostname) and parts.port != 0 and "@" not in parts.netloc
    except ValueError:
        return False
    is_plain = url.isascii() and url.isprintable() and " " not in url
    return is_place and is_plain and parts.scheme in ("http", "https") and not set("?#") & set(url)


def file(text: str) -> Path:
    """Return the path of a file that is there."""
    path = Path(text)
    if not path.is_file():
        raise ValueError("must name a readable file")
    return path


def folder(text: str) -> str:
    """Return a relative path that leads nowhere but down."""
    parts = text.split("/")
    if text.startswith("/") or any(part in ("", ".", "..") for part in parts):
        raise ValueError("must be a relative path that stays inside the model")
    return text
