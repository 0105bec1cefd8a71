"""What only the NLI engine's own route does, from checked body to response body.

Knows nothing of torch, or of decisions: those go the way of every engine.
"""

from semif_bento.api import rendering as native
from semif_bento.api.asking import Asker
from semif_bento.api.nli import rendering
from semif_bento.api.nli.results import ClassifyResponse, Embedding, Embeddings
from semif_bento.api.nli.schema import ClassifyRequest
from semif_bento.api.results import NliHealth
from semif_bento.engine.nli.engine import EntailmentEngine
from semif_bento.engine.registry import NLI
from semif_bento.entailment import LABELS, ClassifyOutcome
from semif_bento.errors import NotFound, ScoringFailed
from semif_bento.protocol import MIN_OPTIONS
from semif_bento.serving import metrics


class NliAnswers:
    """POST /classify.

    Args:
        asker: asks the engine, which may be absent.
    """

    def __init__(self, asker: Asker) -> None:
        self._asker = asker

    async def classify(
        self, body: ClassifyRequest, arrived_s: float
    ) -> ClassifyResponse | Embedding | Embeddings:
        """Answer POST /classify.

        Raises:
            NotFound: the NLI engine is not loaded.
            InvalidRequest: too many pairs, or as the classifier raises it.
            RequestError: as `Scheduler.run` raises it.
        """
        engine = _find(self._asker)
        if engine is None:
            raise NotFound(NLI.absent)
        engine.refuse_many(body.size())
        outcome = await self._classify(engine, body, arrived_s)
        return rendering.to_response(body, outcome, engine.classifier)

    async def _classify(
        self, engine: EntailmentEngine, body: ClassifyRequest, arrived_s: float
    ) -> ClassifyOutcome:
        inputs = rendering.to_inputs(body)
        outcome = await self._asker.scheduler.run(
            engine.name,
            "classify",
            lambda caller: engine.classifier.classify(inputs, caller),
            arrived_s,
        )
        if len(outcome.rows) != len(inputs):
            raise ScoringFailed("The classifier did not answer every input.")
        tokens = outcome.timing.prefix_tokens + outcome.timing.suffix_tokens
        metrics.INPUT_TOKENS.labels(engine.name, "classify").inc(tokens)
        return outcome


def nli_health(asker: Asker) -> NliHealth | None:
    """Return what /health tells of the NLI engine; None where it is not loaded."""
    engine = _find(asker)
    if engine is None:
        return None
    table = asker.table(engine.name)
    return NliHealth(
        model=engine.identity.source,
        revision=engine.identity.revision,
        dtype=engine.identity.dtype,
        labels=list(LABELS),
        template=engine.classifier.template,
        prompt_version=engine.prompt_version(MIN_OPTIONS),
        max_pairs=engine.max_pairs,
        workloads=table.workloads,
        calibration=native.to_calibration(table),
    )


def _find(asker: Asker) -> EntailmentEngine | None:
    engine = asker.backend.engines.get(NLI.name)
    return engine if isinstance(engine, EntailmentEngine) else None
