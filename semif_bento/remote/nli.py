"""Open the NLI engine over servers that classify; knows nothing of other engines."""

import logging

from semif_bento.engine.nli.encoding import PairEncoder
from semif_bento.engine.nli.engine import EntailmentEngine
from semif_bento.engine.nli.template import read_configuration
from semif_bento.engine.sources import locate_nli
from semif_bento.engine.vocabulary import load_tokenizer
from semif_bento.remote.classifier import RemoteClassifier
from semif_bento.remote.opening import Opening
from semif_bento.remote.probes import expect_classes

logger = logging.getLogger(__name__)


def open_engine(opening: Opening) -> EntailmentEngine:
    """Load the tokenizer, prove the servers, and return the NLI engine over them.

    Raises:
        StartupError: the checkpoint's files, or a proof of a server.
    """
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
    identity = opening.identify(source, expected, version, opening.nli)
    logger.info("ready for entailment: %s", identity.device)
    classifier = RemoteClassifier(
        identity=identity,
        model=model,
        encoder=encoder,
        dialect=dialect,
        fleet=opening.nli,
        loop=opening.loop,
        status=opening.status,
    )
    return EntailmentEngine(classifier, settings.max_pairs)
