"""The one way from any protocol to any engine: find it, ask it in its turn, count what it read.

Knows nothing of bodies, wording or torch.
"""

from collections.abc import Mapping

from semif_bento.backend import Backend
from semif_bento.calibration import CalibrationTable
from semif_bento.decisions import DirectOutcome, Engine, ScoreRequest, SharedOutcome
from semif_bento.engine.registry import KINDS
from semif_bento.errors import NotFound, ScoringFailed
from semif_bento.serving import metrics
from semif_bento.serving.scheduler import Scheduler


class Asker:
    """The engines behind one scheduler, with their calibration tables.

    Args:
        scheduler: open, so that its engines are loaded.
        tables: temperatures by engine; each engine has one, which may be empty.
    """

    def __init__(self, scheduler: Scheduler, tables: Mapping[str, CalibrationTable]) -> None:
        self.scheduler = scheduler
        self._tables = tables

    @property
    def backend(self) -> Backend:
        """What is served."""
        return self.scheduler.backend

    def engine(self, name: str | None = None) -> Engine:
        """Return the engine that goes by a name, or the one that is asked by default.

        Raises:
            NotFound: it is not loaded; the message says what enables it.
        """
        if name is None:
            return self.backend.first
        engine = self.backend.engines.get(name)
        if engine is None:
            raise NotFound(KINDS[name].absent)
        return engine

    def table(self, engine: str) -> CalibrationTable:
        """Return the temperatures of an engine."""
        return self._tables[engine]

    async def direct(
        self, engine: Engine, request: ScoreRequest, arrived_s: float
    ) -> DirectOutcome:
        """Ask an engine the only decision of a request.

        Raises:
            RequestError: as the engine's `check`, `Scheduler.run` and the engine raise it.
        """
        engine.check(request)
        outcome = await self.scheduler.run(
            engine.name, "direct", lambda caller: engine.direct(request, caller), arrived_s
        )
        metrics.INPUT_TOKENS.labels(engine.name, "direct").inc(outcome.scores.input_tokens)
        return outcome

    async def shared(
        self, engine: Engine, request: ScoreRequest, arrived_s: float
    ) -> SharedOutcome:
        """Ask an engine every decision of a request over one reading of its state.

        Raises:
            ScoringFailed: it did not answer every decision, which clients would not notice.
            RequestError: as for `direct`.
        """
        engine.check(request)
        outcome = await self.scheduler.run(
            engine.name, "shared", lambda caller: engine.shared(request, caller), arrived_s
        )
        if [one.decision_id for one in outcome.scores] != [one.id for one in request.decisions]:
            raise ScoringFailed("The scorer did not answer every decision.")
        tokens = outcome.timing.prefix_tokens + outcome.timing.true_suffix_tokens
        metrics.INPUT_TOKENS.labels(engine.name, "shared").inc(tokens)
        return outcome
