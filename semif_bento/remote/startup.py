"""Open engines over servers, or refuse to start; knows nothing of BentoML."""

import os
from importlib import import_module
from typing import Protocol, cast

from semif_bento.backend import Backend
from semif_bento.decisions import Engine
from semif_bento.engine.kind import EngineKind
from semif_bento.engine.registry import wanted_kinds
from semif_bento.errors import StartupError
from semif_bento.remote.dialect import Dialect
from semif_bento.remote.opening import Opening
from semif_bento.remote.sglang import SglangDialect
from semif_bento.remote.vllm import VllmDialect
from semif_bento.settings import Settings

DIALECTS: dict[str, Dialect] = {"vllm": VllmDialect(), "sglang": SglangDialect()}


class RemoteModule(Protocol):
    """An engine's module of this room."""

    def open_engine(self, opening: Opening) -> Engine:
        """Prove the servers and return the engine; raises StartupError."""
        ...


def open_backend(settings: Settings) -> Backend:
    """Load the tokenizers, prove every server, and return a backend that is ready to serve.

    Raises:
        StartupError: a tokenizer's files or slots, a proof of a server, or an engine that servers
            cannot stand in for.
    """
    os.environ["HF_HUB_OFFLINE"] = "1"
    modules = {kind.name: _module(kind, settings.backend) for kind in wanted_kinds(settings)}
    opening = Opening.of(settings, DIALECTS[settings.backend])
    is_open = False
    try:
        backend = Backend(
            {name: module.open_engine(opening) for name, module in modules.items()},
            settings.default_engine,
            slots=settings.backend_concurrency * len(opening.status().servers),
            close=opening.close,
        )
        is_open = True
    finally:
        if not is_open:
            opening.close()
    return backend


def _module(kind: EngineKind, backend: str) -> RemoteModule:
    if kind.remote_module is None:
        raise StartupError(f"The {kind.name} engine does not run over {backend}.")
    return cast("RemoteModule", import_module(kind.remote_module))
