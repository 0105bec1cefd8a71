"""Everything an operator can set, read once from the environment; knows nothing of what uses it."""

from semif_bento.settings.model import (
    DEFAULT_MODEL,
    DEFAULT_REVISION,
    NO_MODEL,
    Settings,
    is_hub_id,
    settings_table,
    variable,
)

__all__ = [
    "DEFAULT_MODEL",
    "DEFAULT_REVISION",
    "NO_MODEL",
    "Settings",
    "is_hub_id",
    "settings_table",
    "variable",
]
