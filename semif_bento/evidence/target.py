"""Open what is to be measured: a running service, or the configured model in this process.

Knows nothing of rows or checks.
"""

import secrets
from dataclasses import dataclass
from typing import Any

from semif_bento.evidence.scoring import TargetScorer
from semif_bento.evidence.service import ServiceScorer
from semif_bento.settings import Settings

IN_PROCESS = "in process"


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """The untouched model behind a scorer of this process, for what only it can tell."""

    model: Any
    tokenizer: Any


@dataclass(frozen=True, slots=True)
class Target:
    """What is measured: a scorer, where it runs, and the limits it sets.

    `vram_cap_gib` is 0 without a cap. `loaded` is None where the scorer is a service.
    """

    scorer: TargetScorer
    place: str
    max_tokens: int
    max_decisions: int
    vram_cap_gib: float
    loaded: LoadedModel | None = None

    def resting_gib(self) -> float:
        """Return the memory that is kept from others now, in GiB."""
        return self.scorer.status().reserved_gib


def new_mark() -> str:
    """Return a text that no state has held before, so that no prefix cache knows the state."""
    return secrets.token_hex(4)


def open_service(url: str, token: str) -> Target:
    """Reach a running service.

    Raises:
        EvidenceError: it cannot be reached, or refuses the token.
    """
    scorer = ServiceScorer(url, token)
    health = scorer.health
    limits = (health["max_tokens"], health["max_decisions"], health["vram_cap_gib"])
    return Target(scorer, scorer.url, *limits)


def open_local(settings: Settings) -> Target:
    """Load the configured model here, as a service would.

    Raises:
        StartupError: as the service's own start raises it.
    """
    from semif_bento.engine.startup import open_model  # torch is slow to import

    opened = open_model(settings)
    return Target(
        opened.scorer,
        IN_PROCESS,
        settings.max_tokens,
        settings.max_decisions,
        settings.vram_cap_gib or 0.0,
        LoadedModel(opened.model, opened.tokenizer),
    )
