"""What a temperature is fitted for: one engine, of a running service or of this process.

Knows nothing of rows, files or the numbers.
"""

from dataclasses import dataclass

from semif_bento.api.nli import rendering
from semif_bento.calibration import ENGINE, NLI_ENGINE
from semif_bento.decisions import DirectOutcome, ScoreRequest
from semif_bento.entailment import Classifier, prompt_version, render_premise
from semif_bento.evidence.scoring import Answering
from semif_bento.evidence.service import ServiceScorer
from semif_bento.evidence.target import Target
from semif_bento.protocol import PROMPT_VERSION
from semif_bento.settings import Settings


@dataclass(frozen=True, slots=True)
class EngineTarget:
    """What answers rows, which engine that is, and the version of what its model reads."""

    scorer: Answering
    engine: str
    prompt_version: str

    def close(self) -> None:
        """Let go of a service, once nothing is asked any more."""
        if isinstance(self.scorer, ServiceScorer):
            self.scorer.close()


class EntailmentScorer:
    """Scores a decision as POST /decide with engine nli does, in this process."""

    def __init__(self, classifier: Classifier) -> None:
        self.identity = classifier.identity
        self._classifier = classifier

    def direct(self, request: ScoreRequest) -> DirectOutcome:
        """Score the only decision of `request` by one call of the classifier.

        Raises:
            RequestError: as the classifier raises it.
        """
        [decision] = request.decisions
        claims = rendering.to_claims(decision)
        pairs = rendering.to_pairs(render_premise(request.state), decision.question, claims)
        outcome = self._classifier.classify(pairs)
        template, timing = self._classifier.template, outcome.timing
        scores, _ = rendering.to_scores(decision.id, claims, pairs, outcome.rows, template)
        forward_seconds = timing.prefill_seconds + timing.forward_seconds
        return DirectOutcome(scores, forward_seconds, timing.total_seconds)


def letter_target(target: Target) -> EngineTarget:
    """Return the letter engine of what is measured."""
    return EngineTarget(target.scorer, ENGINE, PROMPT_VERSION)


def open_nli_service(url: str, token: str) -> EngineTarget:
    """Reach the NLI engine of a running service.

    Raises:
        EvidenceError: it cannot be reached, refuses the token, or has no NLI engine.
    """
    scorer = ServiceScorer(url, token, NLI_ENGINE)
    return EngineTarget(scorer, NLI_ENGINE, scorer.prompt_version)


def open_nli_local(settings: Settings) -> EngineTarget:
    """Load the configured NLI model here, as a service would.

    Raises:
        StartupError: as the service's own start raises it.
    """
    from semif_bento.engine.startup import open_classifier  # torch is slow to import

    classifier, _ = open_classifier(settings)
    return EngineTarget(
        EntailmentScorer(classifier), NLI_ENGINE, prompt_version(classifier.template)
    )
