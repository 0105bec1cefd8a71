"""The scripted service with an asker of its own behind /v1/decisions.

It words questions as it likes: tests of the wire need an answer, not a good one.
"""

import functools
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from semif_bento.api.asking import Asked, Found, Wishes
from semif_bento.api.bento import read_settings
from semif_bento.api.decisions.answers import Decisions
from semif_bento.api.systemone.models import Catalogue, served_models
from semif_bento.decisions import Decision, JsonState, Option, ScoreRequest
from semif_bento.protocol import margin
from semif_bento.questions import Question
from semif_bento.serving.scheduler import Scheduler
from tests.servers.scripted import SemIf


class ScriptedAsker:
    """Asks the scripted scorer; every second call finds its state in the cache."""

    def __init__(self, catalogue: Catalogue, scheduler: Scheduler) -> None:
        self._catalogue = catalogue
        self._scheduler = scheduler

    async def ask(
        self,
        model_name: str,
        state: JsonState,
        questions: Sequence[Question],
        wishes: Wishes,
        arrived_s: float,
    ) -> Asked:
        model = self._catalogue.find(model_name)
        decisions = tuple(
            Decision(one.id, one.instructions, tuple(Option(o.id, o.label) for o in one.options))
            for one in questions
        )
        request = ScoreRequest(state, decisions, wishes.diagnostics)
        scorer = self._scheduler.backend.require_letter()
        outcome = await self._scheduler.run(
            "shared", lambda caller: scorer.shared(request, caller), arrived_s
        )
        timing = outcome.timing
        found = {
            scores.decision_id: Found(
                scores.probabilities,
                scores,
                {"margin": margin(scores.probabilities), "letter_mass": scores.letter_mass},
            )
            for scores in outcome.scores
        }
        return Asked(
            model.name,
            found,
            timing.prefix_tokens + timing.true_suffix_tokens,
            timing.prefix_tokens if timing.cache_hit else 0,
        )


def with_decisions(begin: Any) -> Any:
    """Add to a service what the routes of /v1/decisions ask of it."""

    @functools.wraps(begin)
    def begin_and_add(self: Any) -> None:
        begin(self)
        models = served_models(self.scheduler.backend, read_settings().model_aliases)
        self.catalogue = Catalogue(models, datetime.now(UTC).date())
        self.decisions = Decisions(ScriptedAsker(self.catalogue, self.scheduler))

    return begin_and_add


SemIf.inner.__init__ = with_decisions(SemIf.inner.__init__)
