"""All that is particular to BentoML: the guarded service class, its inputs, the mount.

Knows nothing of scoring. It leans on BentoML's undocumented layering, so BentoML is pinned, and
the tests against a real server hold it.
"""

import contextlib
import functools
import logging
import os
import sys
from collections.abc import Awaitable, Iterator
from types import TracebackType
from typing import Any, cast

import bentoml
from bentoml._internal.server.http.traffic import TimeoutMiddleware
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp

from semif_bento.api import exchange, mount, openapi
from semif_bento.api.body import Body
from semif_bento.api.guard import Guard
from semif_bento.api.nli.results import Embedding, Embeddings
from semif_bento.api.nli.schema import ClassifyRequest
from semif_bento.api.refusal import refuse
from semif_bento.api.schema import DecideRequest, NoBody, SharedRequest
from semif_bento.errors import RequestError, StartupError
from semif_bento.serving.failures import WithoutMessages
from semif_bento.settings import Settings


class GuardedService(bentoml.Service):
    """A BentoML service inside our two layers, with our OpenAPI document."""

    def to_asgi(self, is_main: bool = True) -> ASGIApp:
        """Return the whole application; reads the settings.

        Exits:
            1 with one line on stderr if a setting is wrong.
        """
        with exit_on_startup_error():
            settings = read_settings()
        _quiet_logs()
        self.middlewares.clear()
        limits = {"max_body_bytes": settings.max_body_bytes, "timeout_s": settings.timeout_s}
        self.middlewares.append((cast("Any", Body), limits))
        app = super().to_asgi(is_main=is_main)
        # Ours bounds every wait; BentoML's keeps 7 KB of each answered call until its timer ends.
        layers = cast("Starlette", app).user_middleware
        layers[:] = [layer for layer in layers if layer.cls is not TimeoutMiddleware]
        return Guard(app, settings.api_token, closed=() if settings.open_docs else ("/docs",))

    @property
    def openapi_spec(self) -> Any:
        """BentoML's document, corrected to what the server really takes and answers."""
        return openapi.Corrected(super().openapi_spec.asdict())


class _Checked(bentoml.IODescriptor):
    """A BentoML input that takes the body our own layer has read and checked."""

    @classmethod
    async def from_http_request(cls, request: Request, serde: Any) -> Any:
        body = exchange.current().body
        return cls.model_construct(**dict(body) if body else {})


class DecideBody(_Checked, DecideRequest):
    """POST /decide, as BentoML's clients see it."""


class SharedBody(_Checked, SharedRequest):
    """POST /decide/shared, as BentoML's clients see it."""


class ClassifyBody(_Checked, ClassifyRequest):
    """POST /classify, as BentoML's clients see it."""


class HealthBody(_Checked, NoBody):
    """POST /health, as BentoML's clients see it."""


@functools.cache
def read_settings() -> Settings:
    """Return the settings of this process, read from its environment once.

    Raises:
        StartupError: as `Settings.from_env` raises it.
    """
    return Settings.from_env(os.environ)


@contextlib.contextmanager
def exit_on_startup_error() -> Iterator[None]:
    """End the process with exit code 1 and one line on stderr if the body raises StartupError."""
    try:
        yield
    except StartupError as error:
        _say(f"semif-bento cannot start: {error}")
        logging.getLogger("uvicorn.error").disabled = True  # it would add the exit's traceback
        raise SystemExit(1) from None


def announce_worker_end() -> None:
    """Make the parent process say in one line, not with a traceback, that its worker ended."""

    def announce(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        if "No active process" in str(error):
            _say("semif-bento stopped: its worker has ended.")
        else:
            sys.__excepthook__(kind, error, trace)

    sys.excepthook = announce


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


async def answer(result: Awaitable[object]) -> Any:
    """Await a route's result, for BentoML to render.

    One of our errors, or a body in the shape of another server, becomes a response, which BentoML
    passes on as it is.
    """
    try:
        answered = await result
    except RequestError as error:
        return refuse(error)
    if isinstance(answered, Embedding | Embeddings):
        return JSONResponse(answered.model_dump())
    return answered


mounted_app = mount.build(bentoml.get_current_service)


def _quiet_logs() -> None:
    """Let our INFO lines through, and keep exception messages out of every handler."""
    logging.getLogger("semif_bento").setLevel(logging.INFO)
    for name in ("", "bentoml", "uvicorn.error"):
        for handler in logging.getLogger(name).handlers:
            handler.addFilter(WithoutMessages())
