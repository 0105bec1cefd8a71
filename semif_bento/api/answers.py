"""What the native routes do, from checked body to response body; knows nothing of BentoML."""

from dataclasses import asdict

from semif_bento import __version__
from semif_bento.api import rendering
from semif_bento.api.asking import Asker
from semif_bento.api.nli.answers import nli_health
from semif_bento.api.results import (
    DecisionResult,
    EngineHealth,
    EngineServer,
    Health,
    PrefixCache,
    SharedResponse,
)
from semif_bento.api.schema import DecideRequest, SharedRequest
from semif_bento.errors import InvalidRequest
from semif_bento.protocol import MIN_OPTIONS, SEMIF_COMMIT
from semif_bento.settings import Settings


class Answers:
    """The native routes over every engine.

    Args:
        settings: limits, and what /health repeats of them.
        asker: asks the engines.
    """

    def __init__(self, settings: Settings, asker: Asker) -> None:
        self._settings = settings
        self._asker = asker

    async def decide(self, body: DecideRequest, arrived_s: float) -> DecisionResult:
        """Answer POST /decide.

        Raises:
            NotFound: the engine asked for is not loaded.
            InvalidRequest: unknown workload, or as the engine raises it.
            RequestError: as `Asker.direct` raises it.
        """
        engine = self._asker.engine(body.engine)
        table = self._asker.table(engine.name)
        table.require(body.workload)
        outcome = await self._asker.direct(engine, rendering.to_direct_request(body), arrived_s)
        return rendering.to_direct_result(outcome, engine, table, body)

    async def decide_shared(self, body: SharedRequest, arrived_s: float) -> SharedResponse:
        """Answer POST /decide/shared.

        Raises:
            NotFound: the engine asked for is not loaded.
            InvalidRequest: too many decisions, unknown workload, or as the engine raises it.
            RequestError: as `Asker.shared` raises it.
        """
        asked, limit = len(body.decisions), self._settings.max_decisions
        if asked > limit:
            raise InvalidRequest(f"`decisions` has {asked} entries; at most {limit} are taken.")
        engine = self._asker.engine(body.engine)
        table = self._asker.table(engine.name)
        table.require(body.workload)
        outcome = await self._asker.shared(engine, rendering.to_shared_request(body), arrived_s)
        return rendering.to_shared_response(outcome, engine, table, body)

    def health(self) -> Health:
        """Answer /health without waiting for the running call."""
        backend = self._asker.backend
        first, model, status = backend.first, backend.identity, backend.status()
        table = self._asker.table(first.name)
        return Health(
            status="ok",
            semif_commit=SEMIF_COMMIT,
            model=model.source,
            vram_cap_gib=self._settings.vram_cap_gib or 0.0,
            max_tokens=self._settings.max_tokens,
            max_decisions=self._settings.max_decisions,
            workloads=table.workloads,
            calibration=rendering.to_calibration(table),
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
            prompt_version=first.prompt_version(MIN_OPTIONS),
            version=__version__,
            engine=first.name,
            engines=list(backend.engines),
            by_engine={name: self._engine_health(name) for name in backend.engines},
            nli=nli_health(self._asker),
            servers=[EngineServer(**asdict(server)) for server in status.servers] or None,
        )

    def _engine_health(self, name: str) -> EngineHealth:
        engine, table = self._asker.engine(name), self._asker.table(name)
        return EngineHealth(
            prompt_version=engine.prompt_version(MIN_OPTIONS),
            most_options=engine.most_options,
            workloads=table.workloads,
            calibration=rendering.to_calibration(table),
        )
