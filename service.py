"""The BentoML service: routes, start, stop; knows nothing of tensors or of how errors look.

Start it with `bentoml serve` in this directory.
"""

import os
from typing import Any

import bentoml
from starlette.responses import Response

from semif_bento.api import exchange
from semif_bento.api.answers import Answers
from semif_bento.api.bento import (
    DecideBody,
    GuardedService,
    HealthBody,
    SharedBody,
    answer,
    exit_on_startup_error,
    health_app,
    read_settings,
)
from semif_bento.api.results import DecisionResult, Health, SharedResponse
from semif_bento.api.schema import DecideRequest, SharedRequest
from semif_bento.calibration import load_calibration
from semif_bento.decisions import Scorer
from semif_bento.serving.desk import Desk
from semif_bento.settings import Settings

# A worker that cannot start must end the server, not be respawned for ever behind an open socket.
os.environ.setdefault("BENTOML_CONTAINERIZED", "1")
os.environ.setdefault("BENTOML_DO_NOT_TRACK", "True")


def open_scorer(settings: Settings) -> Scorer:
    """Load the configured model; raises StartupError."""
    from semif_bento.engine import startup  # torch takes seconds to import; the parent needs none

    return startup.open_scorer(settings)


@bentoml.service(
    service_class=GuardedService,
    name="semif",
    workers=1,
    logging={"access": {"enabled": False}},  # ours is in api/access.py; BentoML's logs raw paths
)
@bentoml.asgi_app(health_app, path="/")
class SemIf:
    """Decides by one forward pass."""

    open_scorer = staticmethod(open_scorer)

    @bentoml.on_deployment
    @staticmethod
    def check() -> None:
        """Run the gates that need no model, once, before any worker starts."""
        with exit_on_startup_error():
            load_calibration(read_settings().calibration)

    def __init__(self) -> None:
        with exit_on_startup_error():
            settings = read_settings()
            table = load_calibration(settings.calibration)
            self.desk = Desk(settings.max_waiting, settings.timeout_s)
            self.desk.open(lambda: self.open_scorer(settings))
        self.answers = Answers(settings, table, self.desk)

    @bentoml.on_shutdown
    def close(self) -> None:
        """Wait for the running call."""
        self.desk.close()

    @bentoml.api(route="/health", input_spec=HealthBody, output_spec=Health)
    async def health(self) -> Health:
        """Tell whether the service is up and what it serves."""
        return self.answers.health()

    @bentoml.api(route="/decide", input_spec=DecideBody, output_spec=DecisionResult)
    async def decide(self, **body: Any) -> DecisionResult | Response:
        """Score one decision by one whole forward pass."""
        request = DecideRequest.model_construct(**body)
        return await answer(self.answers.decide(request, exchange.current().arrived_s))

    @bentoml.api(route="/decide/shared", input_spec=SharedBody, output_spec=SharedResponse)
    async def decide_shared(self, **body: Any) -> SharedResponse | Response:
        """Score many decisions over one state, which is read once."""
        request = SharedRequest.model_construct(**body)
        return await answer(self.answers.decide_shared(request, exchange.current().arrived_s))
