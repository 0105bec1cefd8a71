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
    )
)
OPAQUE_KEY = "state"

Path = Sequence[str | int]


def name_key(path: Path, key: str) -> str | None:
    """Return a key that stands in the object at `path`, or None if the caller chose it."""
    return key if key in PRINTABLE_KEYS and OPAQUE_KEY not in path else None


def name_path(path: Path) -> str:
    """Return the printable name of a place; the empty path is the top level."""
    name = ""
    for depth, step in enumerate(path):
        if isinstance(step, int):
            name += f"[{step}]"
        else:
            name += "." * bool(name) + (name_key(path[:depth], step) or "*")
    return f"`{name}`" if name else "The top level"
