"""Open a scorer over an engine's servers, or refuse to start; knows nothing of BentoML."""

import logging
import os
from functools import partial
from pathlib import Path

import transformers

from semif_bento.backend import Backend
from semif_bento.caller import Caller
from semif_bento.decisions import ModelIdentity
from semif_bento.engine.encoding import Encoder
from semif_bento.engine.sources import ModelSource, locate
from semif_bento.engine.vocabulary import load_tokenizer
from semif_bento.protocol import MAX_WIDE_OPTIONS
from semif_bento.remote.dialect import Dialect
from semif_bento.remote.fleet import Fleet
from semif_bento.remote.loop import BackgroundLoop
from semif_bento.remote.proofs import Expectation, Findings, make_probes, prove_again, prove_all
from semif_bento.remote.scorer import RemoteScorer
from semif_bento.remote.server import Server
from semif_bento.remote.sglang import SglangDialect
from semif_bento.remote.vllm import VllmDialect
from semif_bento.settings import Settings

DIALECTS: dict[str, Dialect] = {"vllm": VllmDialect(), "sglang": SglangDialect()}

logger = logging.getLogger(__name__)


def open_backend(settings: Settings) -> Backend:
    """Load the tokenizer, prove every server, and return a backend that is ready to serve.

    Raises:
        StartupError: the tokenizer's files or slots, or a proof of a server.
    """
    os.environ["HF_HUB_OFFLINE"] = "1"
    dialect = DIALECTS[settings.backend]
    source = locate(settings.model, settings.revision)
    tokenizer = load_tokenizer(_tokenizer_directory(source, settings))
    encoder = Encoder(
        tokenizer,
        settings.max_tokens,
        settings.max_tokens * settings.max_decisions,
        most_slots=dialect.most_ids or MAX_WIDE_OPTIONS,
    )
    expected = Expectation(
        dialect=dialect,
        model=settings.backend_model or settings.model,
        max_tokens=settings.max_tokens,
        dtype=settings.dtype,
        probes=make_probes(tokenizer, encoder),
    )
    fleet = Fleet([_server(url, settings) for url in settings.backend_urls])
    loop = BackgroundLoop()
    is_open = False
    try:
        found = loop.run(prove_all(fleet.servers, expected), Caller())
        prove = partial(prove_again, expected=expected, reference=found)
        loop.run(fleet.watch(settings.backend_check_s, prove), Caller())
        is_open = True
    finally:
        if not is_open:
            _close(fleet, loop)
    scorer = _scorer(source, settings, expected, found, encoder, fleet, loop)
    logger.info("ready: %s", scorer.identity.device)
    return Backend(
        letter=scorer,
        slots=len(fleet.servers) * settings.backend_concurrency,
        close=lambda: _close(fleet, loop),
    )


def _tokenizer_directory(source: ModelSource, settings: Settings) -> Path:
    if source.kind != "gguf":
        return source.path
    from semif_bento.engine.gguf import converted_directory  # needs torch, and nothing else does

    return converted_directory(source.path, settings.dtype, settings.cache_dir)


def _server(url: str, settings: Settings) -> Server:
    return Server(
        url, settings.backend_key, settings.backend_concurrency, settings.backend_timeout_s
    )


def _scorer(
    source: ModelSource,
    settings: Settings,
    expected: Expectation,
    found: Findings,
    encoder: Encoder,
    fleet: Fleet,
    loop: BackgroundLoop,
) -> RemoteScorer:
    engine = f"{settings.backend} {found.version}"
    count = len(fleet.servers)
    servers = "1 server" if count == 1 else f"{count} servers"
    return RemoteScorer(
        identity=ModelIdentity(
            source=source.name,
            revision=source.revision,
            dtype=settings.dtype,
            device=f"{engine} on {servers}, serving {expected.model}",
            torch_version=f"that of {engine}",
            transformers_version=transformers.__version__,
        ),
        engine=engine,
        model=expected.model,
        encoder=encoder,
        dialect=expected.dialect,
        fleet=fleet,
        loop=loop,
    )


def _close(fleet: Fleet, loop: BackgroundLoop) -> None:
    loop.run(fleet.close(), Caller())
    loop.close()
