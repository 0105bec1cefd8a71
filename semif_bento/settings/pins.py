"""Which revision a model is pinned to; knows nothing of how weights are found."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from semif_bento.errors import StartupError

DEFAULT_MODEL = "Qwen/Qwen3.5-4B"
DEFAULT_REVISION = "851bf6e806efd8d0a36b00ddf55e13ccb7b8cd0a"
NO_MODEL = "none"


def read_revision(found: Mapping[str, Any]) -> str | None:
    """Return the revision that settings pin the causal model to; None where its package has one.

    Raises:
        StartupError: it does not fit the model.
    """
    model, revision = found.get("model", DEFAULT_MODEL), found.get("revision")
    if model == NO_MODEL:
        if revision is not None:
            raise StartupError("SEMIF_REVISION pins SEMIF_MODEL, which is none: unset one of them.")
        return None
    if model == DEFAULT_MODEL and revision is None:
        return DEFAULT_REVISION
    require_pin("SEMIF_MODEL", model, revision)
    return revision


def require_pin(name: str, model: str, revision: str | None) -> None:
    """Refuse a model without a revision that pins it.

    Args:
        name: the setting that names the model.
        model: its value.
        revision: what pins it.

    Raises:
        StartupError: there is none, or it is no commit of a hub.
    """
    pin = name.replace("MODEL", "REVISION")
    if is_hub_id(model) and not re.fullmatch(r"[0-9a-f]{40}", revision or ""):
        raise StartupError(f"{pin} must be the 40-hex commit of the hub id {name}.")
    if revision is None and not model.startswith("package:"):
        raise StartupError(f"{pin} is required for a local {name}; any text will do.")


def is_hub_id(model: str) -> bool:
    """Tell whether a model source names a hub repository rather than something on this disk."""
    if model.startswith("package:") or model.endswith(".gguf") or Path(model).exists():
        return False
    return re.fullmatch(r"[\w.-]+/[\w.-]+", model) is not None
