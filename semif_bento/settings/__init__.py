"""Everything an operator can set, read once from the environment; knows nothing of what uses it."""

from semif_bento.settings.model import Settings, settings_table, variable
from semif_bento.settings.pins import DEFAULT_MODEL, DEFAULT_REVISION, NO_MODEL, is_hub_id

__all__ = [
    "DEFAULT_MODEL",
    "DEFAULT_REVISION",
    "NO_MODEL",
    "Settings",
    "is_hub_id",
    "settings_table",
    "variable",
]
