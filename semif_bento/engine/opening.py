"""What the engines of one process have in common while they are opened; knows no engine.

An engine's own `opening` module has two functions. `load_weights(opening)` puts its weights on the
device, through `once` where several engines read one model; `open_engine(opening)` builds and
proves the engine. All weights are loaded before any engine is built: what they leave under a cap is
every engine's budget.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any, Protocol, TypeVar

from semif_bento.decisions import Engine
from semif_bento.engine.workspace import Workspace
from semif_bento.settings import Settings

T = TypeVar("T")


class Opening:
    """One start: its settings, what has been loaded, and the workspace that all engines share."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._loaded: dict[str, Any] = {}

    def once(self, name: str, load: Callable[[], T]) -> T:
        """Return what goes by a name, loading it where nobody has yet."""
        if name not in self._loaded:
            self._loaded[name] = load()
        return self._loaded[name]

    @cached_property
    def workspace(self) -> Workspace:
        """The device's memory, prefix cache and guard; ask for it once all weights are loaded."""
        return Workspace.of(self.settings)


class EngineModule(Protocol):
    """An engine's `opening` module."""

    def load_weights(self, opening: Opening) -> None:
        """Load what the engine reads; raises StartupError."""
        ...

    def open_engine(self, opening: Opening) -> Engine:
        """Build, prove and warm up the engine; raises StartupError."""
        ...
