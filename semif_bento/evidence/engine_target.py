"""What a temperature is fitted for: one engine, of a running service or of this process.

Knows nothing of rows, files or the numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from semif_bento.engine.kind import EngineKind
from semif_bento.engine.registry import KINDS
from semif_bento.evidence.scoring import Answering
from semif_bento.evidence.service import ServiceScorer, read_health
from semif_bento.protocol import MIN_OPTIONS
from semif_bento.settings import Settings


@dataclass(frozen=True, slots=True)
class EngineTarget:
    """What answers rows, which kind of engine that is, and the version of what its model reads."""

    scorer: Answering
    kind: EngineKind
    prompt_version: str

    def close(self) -> None:
        """Let go of a service, once nothing is asked any more."""
        if isinstance(self.scorer, ServiceScorer):
            self.scorer.close()


def engines_of_service(url: str, token: str) -> list[EngineKind]:
    """Return the kinds of engine that a service has, in the list's order.

    Raises:
        EvidenceError: it cannot be reached, or refuses the token.
    """
    names = read_health(url, token)["engines"]
    return [kind for kind in KINDS.values() if kind.name in names]


def open_engine_service(url: str, token: str, kind: EngineKind) -> EngineTarget:
    """Reach an engine of a running service.

    Raises:
        EvidenceError: it cannot be reached, refuses the token, or has no such engine.
    """
    scorer = ServiceScorer(url, token, kind.name)
    return EngineTarget(scorer, kind, scorer.prompt_version)


def open_engine_local(settings: Settings, kind: EngineKind) -> EngineTarget:
    """Load an engine here, as a service would.

    Raises:
        StartupError: as the service's own start raises it.
    """
    [target] = open_engines_local(settings, [kind])
    return target


def open_engines_local(settings: Settings, kinds: Sequence[EngineKind]) -> list[EngineTarget]:
    """Load engines here, as a service would; what several of them read is loaded once.

    Raises:
        StartupError: as the service's own start raises it.
    """
    from semif_bento.engine.startup import open_backend  # torch is slow to import

    engines = open_backend(settings, kinds).engines
    return [
        EngineTarget(engines[kind.name], kind, engines[kind.name].prompt_version(MIN_OPTIONS))
        for kind in kinds
    ]
