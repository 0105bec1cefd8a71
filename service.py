"""The BentoML service: routes, start, stop; knows nothing of tensors or of how errors look.

Start it with `bentoml serve` in this directory.
"""

import os
from typing import Any

import bentoml

from semif_bento.api import bento, exchange
from semif_bento.api.answers import Answers
from semif_bento.api.asking import Asker
from semif_bento.api.catalogue import Catalogue
from semif_bento.api.decisions.answers import Decisions
from semif_bento.api.nli.answers import NliAnswers
from semif_bento.api.nli.results import ClassifyResponse
from semif_bento.api.nli.schema import ClassifyRequest
from semif_bento.api.results import DecisionResult, Health, SharedResponse
from semif_bento.api.schema import DecideRequest, SharedRequest
from semif_bento.api.systemone.answers import SystemOne
from semif_bento.api.typed import TypedAsker
from semif_bento.backend import Backend
from semif_bento.calibration import load_calibration
from semif_bento.engine.registry import KINDS, wanted_kinds
from semif_bento.serving.scheduler import Scheduler
from semif_bento.settings import Settings

# A worker that cannot start must end the server, not be respawned for ever behind an open socket.
os.environ.setdefault("BENTOML_CONTAINERIZED", "1")
os.environ.setdefault("BENTOML_DO_NOT_TRACK", "True")
# OpenMP threads that spin while they wait take the cores that other tenants would compute on.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


@bentoml.service(
    service_class=bento.GuardedService,
    name="semif",
    workers=1,
    logging={"access": {"enabled": False}},  # api/access.py has ours; BentoML's logs raw paths
)
@bentoml.asgi_app(bento.mounted_app, path="/")
class SemIf:
    """Decides by one forward pass."""

    @staticmethod
    def open_backend(settings: Settings) -> Backend:
        """Load the configured engines, or reach their servers; raises StartupError."""
        if settings.is_remote:
            from semif_bento.remote import startup as remote  # needs no torch

            return remote.open_backend(settings)
        from semif_bento.engine import startup  # torch is slow to import, and the parent needs none

        return startup.open_backend(settings)

    @bentoml.on_deployment
    @staticmethod
    def check() -> None:
        """Pass the gates that need no model; runs once, in the parent, before any worker."""
        bento.announce_worker_end()
        with bento.exit_on_startup_error():
            settings = bento.read_settings()
            for kind in wanted_kinds(settings):
                table = load_calibration(kind.calibration_file(settings), kind.binding)
                if pinned := kind.pinned_model(settings):  # a package's own is known once loaded
                    table.require_model(*pinned)

    def __init__(self) -> None:
        with bento.exit_on_startup_error():
            settings = bento.read_settings()
            tables = {
                name: load_calibration(kind.calibration_file(settings), kind.binding)
                for name, kind in KINDS.items()
            }
            self.scheduler = Scheduler(settings.max_waiting, settings.timeout_s)
            self.scheduler.open(lambda: self.open_backend(settings))
            for name, engine in self.scheduler.backend.engines.items():
                tables[name].require_model(engine.identity.source, engine.identity.revision)
            asker = Asker(self.scheduler, tables)
            self.nli = NliAnswers(asker)
            self.answers = Answers(settings, asker)
            self.catalogue = Catalogue.over(asker.backend, settings.model_aliases)
            typed = TypedAsker(asker)
            self.systemone = SystemOne(self.catalogue, typed)
            self.decisions = Decisions(self.catalogue, typed)

    @bentoml.on_shutdown
    def close(self) -> None:
        """Wait for the running call."""
        self.scheduler.close()

    @bentoml.api(route="/health", input_spec=bento.HealthBody)
    async def health(self) -> Health:
        """Tell whether the service is up and what it serves."""
        return self.answers.health()

    @bentoml.api(route="/decide", input_spec=bento.DecideBody)
    async def decide(self, **body: Any) -> DecisionResult:
        """Score one decision by one whole forward pass."""
        request = DecideRequest.model_construct(**body)
        return await bento.answer(self.answers.decide(request, exchange.current().arrived_s))

    @bentoml.api(route="/decide/shared", input_spec=bento.SharedBody)
    async def decide_shared(self, **body: Any) -> SharedResponse:
        """Score many decisions over one state, which is read once."""
        request = SharedRequest.model_construct(**body)
        return await bento.answer(self.answers.decide_shared(request, exchange.current().arrived_s))

    @bentoml.api(route="/classify", input_spec=bento.ClassifyBody)
    async def classify(self, **body: Any) -> ClassifyResponse:
        """Tell for pairs of texts whether one contradicts, entails or leaves open the other."""
        request = ClassifyRequest.model_construct(**body)
        return await bento.answer(self.nli.classify(request, exchange.current().arrived_s))
