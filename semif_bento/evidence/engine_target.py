"""What a temperature is fitted for: one engine, of a running service or of this process.

Knows nothing of rows, files or the numbers.
"""

from dataclasses import dataclass

from semif_bento.engine.kind import EngineKind
from semif_bento.evidence.scoring import Answering
from semif_bento.evidence.service import ServiceScorer
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
    from semif_bento.engine.startup import open_backend  # torch is slow to import

    engine = open_backend(settings, [kind]).engines[kind.name]
    return EngineTarget(engine, kind, engine.prompt_version(MIN_OPTIONS))
