"""Open engines over servers, or refuse to start; knows nothing of BentoML."""

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import transformers

from semif_bento.backend import Backend
from semif_bento.caller import Caller
from semif_bento.decisions import ModelIdentity, PrefixCacheStatus, ScorerStatus
from semif_bento.engine.letters.encoding import Encoder
from semif_bento.engine.nli.encoding import PairEncoder
from semif_bento.engine.nli.template import read_configuration
from semif_bento.engine.sources import ModelSource, locate, locate_nli
from semif_bento.engine.vocabulary import load_tokenizer
from semif_bento.protocol import MAX_WIDE_OPTIONS
from semif_bento.remote.classifier import RemoteClassifier
from semif_bento.remote.dialect import Dialect
from semif_bento.remote.fleet import Fleet
from semif_bento.remote.loop import BackgroundLoop
from semif_bento.remote.probes import expect_classes, expect_letters
from semif_bento.remote.proofs import Expectation, prove_again, prove_all
from semif_bento.remote.scorer import RemoteScorer
from semif_bento.remote.server import Server
from semif_bento.remote.sglang import SglangDialect
from semif_bento.remote.vllm import VllmDialect
from semif_bento.settings import Settings

DIALECTS: dict[str, Dialect] = {"vllm": VllmDialect(), "sglang": SglangDialect()}
NOT_HERE = "on the engine's servers"

logger = logging.getLogger(__name__)

Status = Callable[[], ScorerStatus]


@dataclass(frozen=True, slots=True)
class Opening:
    """What the engines of one process have in common while they are opened."""

    settings: Settings
    dialect: Dialect
    loop: BackgroundLoop
    letter: Fleet
    nli: Fleet

    def status(self) -> ScorerStatus:
        """Report the servers; what this process does not have is 0 or said to be elsewhere."""
        servers = (*self.letter.status(), *self.nli.status())
        return ScorerStatus(
            device_name=f"{self.settings.backend} on {_count(len(servers))}",
            allocated_gib=0.0,
            reserved_gib=0.0,
            linear_attention_kernels=NOT_HERE,
            branch_attention=NOT_HERE,
            matrix_products=NOT_HERE,
            branch_budget_mib=0.0,
            prefix_cache=PrefixCacheStatus(0, 0, 0, 0, 0),
            servers=servers,
        )

    def prove(self, fleet: Fleet, expected: Expectation) -> str:
        """Prove every server of a fleet, begin to watch them, and return the engine's version."""
        found = self.loop.run(prove_all(fleet.servers, expected), Caller())
        prove = partial(prove_again, expected=expected, reference=found)
        self.loop.run(fleet.watch(self.settings.backend_check_s, prove), Caller())
        return found.version

    def close(self) -> None:
        """Close every connection and end the thread."""
        self.loop.run(self.letter.close(), Caller())
        self.loop.run(self.nli.close(), Caller())
        self.loop.close()


def open_backend(settings: Settings) -> Backend:
    """Load the tokenizers, prove every server, and return a backend that is ready to serve.

    Raises:
        StartupError: a tokenizer's files or slots, or a proof of a server.
    """
    os.environ["HF_HUB_OFFLINE"] = "1"
    opening = Opening(
        settings,
        DIALECTS[settings.backend],
        BackgroundLoop(),
        _fleet(settings.backend_urls, settings),
        _fleet(settings.backend_nli_urls, settings),
    )
    is_open = False
    try:
        backend = Backend(
            letter=_open_letter(opening) if settings.has_letter_engine else None,
            nli=_open_nli(opening) if settings.nli_model else None,
            slots=settings.backend_concurrency * len(opening.status().servers),
            close=opening.close,
        )
        is_open = True
    finally:
        if not is_open:
            opening.close()
    return backend


def _open_letter(opening: Opening) -> RemoteScorer:
    settings, dialect = opening.settings, opening.dialect
    source = locate(settings.model, settings.revision)
    tokenizer = load_tokenizer(_tokenizer_directory(source, settings))
    encoder = Encoder(
        tokenizer,
        settings.max_tokens,
        settings.max_tokens * settings.max_decisions,
        most_slots=dialect.most_ids or MAX_WIDE_OPTIONS,
    )
    model = settings.backend_model or settings.model
    expected = expect_letters(
        dialect, model, settings.dtype, settings.max_tokens, tokenizer, encoder
    )
    version = opening.prove(opening.letter, expected)
    identity = _identity(source, expected, opening, version, opening.letter)
    logger.info("ready for letters: %s", identity.device)
    return RemoteScorer(
        identity=identity,
        engine=f"{dialect.name} {version}",
        model=model,
        encoder=encoder,
        dialect=dialect,
        fleet=opening.letter,
        loop=opening.loop,
        prime_tokens=settings.backend_prime_tokens,
        status=opening.status,
    )


def _open_nli(opening: Opening) -> RemoteClassifier:
    settings, dialect = opening.settings, opening.dialect
    source = locate_nli(settings)
    config, template = read_configuration(source.path)
    encoder = PairEncoder(
        load_tokenizer(source.path, needs_chat_template=False),
        template,
        settings.max_tokens,
        int(config.get_text_config().vocab_size),
    )
    model = settings.backend_nli_model or str(settings.nli_model)
    expected = expect_classes(dialect, model, settings.nli_dtype, settings.max_tokens, encoder)
    version = opening.prove(opening.nli, expected)
    identity = _identity(source, expected, opening, version, opening.nli)
    logger.info("ready for entailment: %s", identity.device)
    return RemoteClassifier(
        identity=identity,
        model=model,
        encoder=encoder,
        dialect=dialect,
        fleet=opening.nli,
        loop=opening.loop,
        status=opening.status,
    )


def _tokenizer_directory(source: ModelSource, settings: Settings) -> Path:
    if source.kind != "gguf":
        return source.path
    from semif_bento.engine.gguf import converted_directory  # needs torch, and nothing else does

    return converted_directory(source.path, settings.dtype, settings.cache_dir)


def _fleet(urls: tuple[str, ...], settings: Settings) -> Fleet:
    given = (settings.backend_key, settings.backend_concurrency, settings.backend_timeout_s)
    return Fleet([Server(url, *given) for url in urls])


def _identity(
    source: ModelSource, expected: Expectation, opening: Opening, version: str, fleet: Fleet
) -> ModelIdentity:
    engine = f"{opening.dialect.name} {version}"
    return ModelIdentity(
        source=source.name,
        revision=source.revision,
        dtype=expected.dtype,
        device=f"{engine} on {_count(len(fleet.servers))}, serving {expected.model}",
        torch_version=f"that of {engine}",
        transformers_version=transformers.__version__,
    )


def _count(servers: int) -> str:
    return "1 server" if servers == 1 else f"{servers} servers"
