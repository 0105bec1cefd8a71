"""What a process serves: its engines, and how many calls they take at once.

Knows nothing of HTTP, of queues or of how an engine computes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from semif_bento.decisions import Engine, EngineStatus, ModelIdentity
from semif_bento.errors import StartupError


@dataclass(frozen=True, slots=True)
class Backend:
    """The engines of a process by name; the default one speaks for the process.

    `default` is the engine that is asked where a request names none; by default the first.

    `slots` calls may run at once, over all engines together. With 1, every call must come from the
    thread that loaded them. `close` is called once, when no call runs any more.

    Raises:
        StartupError: there is no engine.
    """

    engines: Mapping[str, Engine]
    default: str | None = None
    slots: int = 1
    close: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        """Refuse a backend without an engine."""
        if not self.engines:
            raise StartupError("There is no engine: set SEMIF_MODEL or SEMIF_NLI_MODEL.")
        if self.default is not None and self.default not in self.engines:
            raise StartupError(f"The engine {self.default} is not among those that were opened.")

    @property
    def first(self) -> Engine:
        """The engine that is asked by default, and speaks for the process."""
        return self.engines[self.default or next(iter(self.engines))]

    @property
    def identity(self) -> ModelIdentity:
        """What the process is known for: the default engine's model."""
        return self.first.identity

    def status(self) -> EngineStatus:
        """Report memory, kernels and cache figures, without waiting for a running call.

        Engines of one process share the device and the prefix cache, so any speaks for all.
        """
        return self.first.status()
