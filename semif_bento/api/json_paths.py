"""Names of places in a request body that are safe to print; knows nothing of how they are wrong.

Keys of the protocol are printed, keys that the caller chose are not: `decisions[2].options[0].id`,
but `state.*[3].*`.
"""

from collections.abc import Sequence

PRINTABLE_KEYS = frozenset(
    (
        *("id", "state", "question", "options", "description", "label", "decisions"),
        *("workload", "diagnostics", "engine"),
        *("pairs", "premise", "hypothesis", "input_ids", "text", "image_data"),
        *("model", "questions", "type", "instructions", "criteria"),
        *("input", "role", "content", "phase", "text", "refusal", "data", "name", "mode", "ttl"),
        *("call_id", "namespace", "arguments", "output", "status", "choices", "value"),
        *("levels", "label", "safety_identifier"),
        *("prompt_cache_key", "prompt_cache_options", "prompt_cache_breakpoint"),
    )
)
OPAQUE_KEYS = frozenset(("state", "data"))
"""What stands under these has the caller's keys."""

Path = Sequence[str | int]


def name_key(path: Path, key: str) -> str | None:
    """Return a key that stands in the object at `path`, or None if the caller chose it."""
    return key if key in PRINTABLE_KEYS and OPAQUE_KEYS.isdisjoint(path) else None


def name_path(path: Path) -> str:
    """Return the printable name of a place; the empty path is the top level."""
    name = spell_path(path)
    return f"`{name}`" if name else "The top level"


def spell_path(path: Path) -> str:
    """Return the bare name of a place, "" for the top level."""
    name = ""
    for depth, step in enumerate(path):
        if isinstance(step, int):
            name += f"[{step}]"
        else:
            name += "." * bool(name) + (name_key(path[:depth], step) or "*")
    return name
