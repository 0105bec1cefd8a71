"""What a process serves: its engines, and how many calls they take at once.

Knows nothing of HTTP, of queues or of how an engine computes.
"""

from collections.abc import Callable
from dataclasses import dataclass

from semif_bento.decisions import ModelIdentity, Scorer, ScorerStatus
from semif_bento.entailment import Classifier
from semif_bento.errors import NotFound, StartupError


@dataclass(frozen=True, slots=True)
class Backend:
    """The engine that reads option letters and the one that reads entailment; one may be absent.

    `slots` calls may run at once, over all engines together. With 1, every call must come from the
    thread that loaded them. `close` is called once, when no call runs any more.

    Raises:
        StartupError: neither engine is there.
    """

    letter: Scorer | None = None
    nli: Classifier | None = None
    slots: int = 1
    close: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        """Refuse a backend without an engine."""
        if self.letter is None and self.nli is None:
            raise StartupError("There is no engine: set SEMIF_MODEL or SEMIF_NLI_MODEL.")

    @property
    def identity(self) -> ModelIdentity:
        """What the process is known for: the letter engine's model, else the other's."""
        return self._first().identity

    def status(self) -> ScorerStatus:
        """Report memory, kernels and cache figures, without waiting for a running call.

        Engines of one process share the device and the prefix cache, so either speaks for both.
        """
        return self._first().status()

    def require_letter(self) -> Scorer:
        """Return the letter engine.

        Raises:
            NotFound: this process has none; the message says how to get one.
        """
        if self.letter is None:
            raise NotFound(
                "The letter engine is not loaded here; set SEMIF_MODEL, or ask with engine nli."
            )
        return self.letter

    def require_nli(self) -> Classifier:
        """Return the NLI engine.

        Raises:
            NotFound: this process has none; the message says how to get one.
        """
        if self.nli is None:
            raise NotFound("The NLI engine is not loaded here; SEMIF_NLI_MODEL enables it.")
        return self.nli

    def _first(self) -> Scorer | Classifier:
        return self.letter or self.require_nli()
