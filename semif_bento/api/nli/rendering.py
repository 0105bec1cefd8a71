"""Turns bodies into pairs, and logits into response bodies; pure functions.

Knows nothing of HTTP, queues or where a classifier runs.
"""

from dataclasses import asdict

from semif_bento.api.nli.results import (
    ClassifyResponse,
    ClassifyTiming,
    Embedding,
    Embeddings,
    MetaInfo,
    PairResult,
)
from semif_bento.api.nli.schema import ClassifyRequest
from semif_bento.api.results import SharedModel
from semif_bento.entailment import (
    LABELS,
    Classifier,
    ClassifyOutcome,
    Pair,
    PairLogits,
    Rendered,
    Tokens,
    template_version,
)

CLASSIFY_READOUT = "logits of a classification head at the last token"


def to_inputs(body: ClassifyRequest) -> list[Pair | Rendered | Tokens]:
    """Return what POST /classify asks for, in its order."""
    if body.pairs is not None:
        return [Pair(pair.premise, pair.hypothesis) for pair in body.pairs]
    if body.input_ids is not None:
        return [Tokens(tuple(ids)) for ids in body.input_ids]
    texts = [body.text] if isinstance(body.text, str) else body.text
    return [Rendered(text) for text in texts]


def to_response(
    body: ClassifyRequest, outcome: ClassifyOutcome, classifier: Classifier
) -> ClassifyResponse | Embedding | Embeddings:
    """Return the body that answers POST /classify, in the shape that the request asks for."""
    if body.text is None:
        return ClassifyResponse(
            labels=list(LABELS),
            results=[_pair_result(row) for row in outcome.rows],
            template=classifier.template,
            template_version=template_version(classifier.template),
            model=to_model(classifier),
            readout=CLASSIFY_READOUT,
            timing=ClassifyTiming(**asdict(outcome.timing)),
        )
    found = [
        Embedding(embedding=list(row.logits), meta_info=MetaInfo(prompt_tokens=row.input_tokens))
        for row in outcome.rows
    ]
    return found[0] if isinstance(body.text, str) else Embeddings(found)


def to_model(classifier: Classifier) -> SharedModel:
    """Return what answered."""
    return SharedModel(**asdict(classifier.identity), serving_config=classifier.serving_config)


def _pair_result(row: PairLogits) -> PairResult:
    return PairResult(
        logits=list(row.logits),
        probabilities=list(row.probabilities),
        input_tokens=row.input_tokens,
        tokens_sha256=row.tokens_sha256,
    )
