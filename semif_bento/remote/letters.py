"""Open the letter engine over servers; knows nothing of other engines."""

import logging
from pathlib import Path

from semif_bento.engine.letters.encoding import Encoder
from semif_bento.engine.sources import ModelSource, locate
from semif_bento.engine.vocabulary import load_tokenizer
from semif_bento.protocol import MAX_WIDE_OPTIONS
from semif_bento.remote.opening import Opening
from semif_bento.remote.probes import expect_letters
from semif_bento.remote.scorer import RemoteScorer
from semif_bento.settings import Settings

logger = logging.getLogger(__name__)


def open_engine(opening: Opening) -> RemoteScorer:
    """Load the tokenizer, prove the servers, and return the letter engine over them.

    Raises:
        StartupError: the tokenizer's files or slots, or a proof of a server.
    """
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
    version = opening.prove(opening.causal, expected)
    identity = opening.identify(source, expected, version, opening.causal)
    logger.info("ready for letters: %s", identity.device)
    return RemoteScorer(
        identity=identity,
        engine=f"{dialect.name} {version}",
        model=model,
        encoder=encoder,
        dialect=dialect,
        fleet=opening.causal,
        loop=opening.loop,
        prime_tokens=settings.backend_prime_tokens,
        status=opening.status,
    )


def _tokenizer_directory(source: ModelSource, settings: Settings) -> Path:
    if source.kind != "gguf":
        return source.path
    from semif_bento.engine.gguf import converted_directory  # needs torch, and nothing else does

    return converted_directory(source.path, settings.dtype, settings.cache_dir)
