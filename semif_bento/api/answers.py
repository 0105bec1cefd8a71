"""What each route does, from checked body to response body; knows nothing of BentoML or torch."""

from dataclasses import asdict

from semif_bento import __version__
from semif_bento.api import rendering
from semif_bento.api.nli.answers import NliAnswers
from semif_bento.api.results import (
    DecisionResult,
    EngineServer,
    Health,
    PrefixCache,
    SharedResponse,
)
from semif_bento.api.schema import DecideRequest, SharedRequest
from semif_bento.calibration import CalibrationTable
from semif_bento.errors import InvalidRequest
from semif_bento.protocol import PROMPT_VERSION, SEMIF_COMMIT
from semif_bento.serving import metrics
from semif_bento.serving.scheduler import Scheduler
from semif_bento.settings import Settings


class Answers:
    """The routes over one scheduler.

    Args:
        settings: limits, and what /health repeats of them.
        table: temperatures by workload.
        scheduler: open, so that its engines are loaded.
        nli: answers what is asked with engine nli.
    """

    def __init__(
        self, settings: Settings, table: CalibrationTable, scheduler: Scheduler, nli: NliAnswers
    ) -> None:
        self._settings = settings
        self._table = table
        self._scheduler = scheduler
        self._nli = nli

    async def decide(self, body: DecideRequest, arrived_s: float) -> DecisionResult:
        """Answer POST /decide.

        Raises:
            NotFound: the engine asked for is not loaded.
            InvalidRequest: unknown workload, or as the scorer raises it.
            RequestError: as `Scheduler.run` raises it.
        """
        if body.engine == "nli":
            return await self._nli.decide(body, arrived_s)
        scorer = self._scheduler.backend.require_letter()
        self._table.require(body.workload)
        request = rendering.to_direct_request(body)
        outcome = await self._scheduler.run(
            "direct", lambda caller: scorer.direct(request, caller), arrived_s
        )
        metrics.INPUT_TOKENS.labels("direct").inc(outcome.scores.input_tokens)
        return rendering.to_direct_result(outcome, scorer.identity, self._table, body.workload)

    async def decide_shared(self, body: SharedRequest, arrived_s: float) -> SharedResponse:
        """Answer POST /decide/shared.

        Raises:
            NotFound: the engine asked for is not loaded.
            InvalidRequest: too many decisions, unknown workload, or as the scorer raises it.
            RequestError: as `Scheduler.run` raises it.
        """
        asked, limit = len(body.decisions), self._settings.max_decisions
        if asked > limit:
            raise InvalidRequest(f"`decisions` has {asked} entries; at most {limit} are taken.")
        if body.engine == "nli":
            return await self._nli.decide_shared(body, arrived_s)
        scorer = self._scheduler.backend.require_letter()
        self._table.require(body.workload)
        request = rendering.to_shared_request(body)
        outcome = await self._scheduler.run(
            "shared", lambda caller: scorer.shared(request, caller), arrived_s
        )
        timing = outcome.timing
        tokens = timing.prefix_tokens + timing.true_suffix_tokens
        metrics.INPUT_TOKENS.labels("shared").inc(tokens)
        return rendering.to_shared_response(outcome, scorer.identity, self._table, body.workload)

    def health(self) -> Health:
        """Answer /health without waiting for the running call."""
        backend = self._scheduler.backend
        model, status, nli = backend.identity, backend.status(), self._nli.health()
        engines = [name for name, one in (("letter", backend.letter), ("nli", nli)) if one]
        return Health(
            status="ok",
            semif_commit=SEMIF_COMMIT,
            model=model.source,
            vram_cap_gib=self._settings.vram_cap_gib or 0.0,
            max_tokens=self._settings.max_tokens,
            max_decisions=self._settings.max_decisions,
            workloads=self._table.workloads,
            calibration=rendering.to_calibration(self._table),
            device_name=status.device_name,
            allocated_gib=status.allocated_gib,
            reserved_gib=status.reserved_gib,
            linear_attention_kernels=status.linear_attention_kernels,
            branch_attention=status.branch_attention,
            matrix_products=status.matrix_products,
            branch_budget_mib=status.branch_budget_mib,
            prefix_cache=PrefixCache(**asdict(status.prefix_cache)),
            revision=model.revision,
            dtype=model.dtype,
            prompt_version=PROMPT_VERSION if backend.letter or not nli else nli.prompt_version,
            version=__version__,
            engines=engines,
            nli=nli,
            servers=[EngineServer(**asdict(server)) for server in status.servers] or None,
        )
