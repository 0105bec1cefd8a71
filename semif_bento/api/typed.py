"""Typed questions about one state, for every protocol that asks them.

Knows nothing of a protocol's bodies or errors. Questions with one option only are answered without
the model.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from semif_bento.api.asking import Asker
from semif_bento.api.catalogue import ServedModel
from semif_bento.calibration import CalibratedView, CalibrationTable
from semif_bento.decisions import Engine, JsonState, ScoreRequest, Scores
from semif_bento.engine.registry import KINDS
from semif_bento.errors import InvalidRequest
from semif_bento.protocol import is_near_tie, margin
from semif_bento.questions import Question

WORKLOAD, DIAGNOSTICS = "x-semif-workload", "x-semif-diagnostics"
"""Headers that ask for more, where a protocol's body takes no keys but its own."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a request asks for beside its answers."""

    workload: str | None = None
    diagnostics: bool = False

    @classmethod
    def of(cls, headers: Mapping[str, str], table: CalibrationTable) -> "Wishes":
        """Read the headers.

        Raises:
            InvalidRequest: an unknown workload, or diagnostics that are neither true nor false.
        """
        diagnostics = headers.get(DIAGNOSTICS, "false")
        if diagnostics not in ("true", "false"):
            raise InvalidRequest(f"{DIAGNOSTICS} must be true or false.")
        workload = headers.get(WORKLOAD)
        table.require(workload)
        return cls(workload, diagnostics == "true")


@dataclass(frozen=True, slots=True)
class Evidence:
    """What an engine tells of an answer beyond its probabilities; the contract has each.

    What an engine doesn't have, or nobody asked for, is None; `pair_logits` are by option.
    """

    option_ids: tuple[str, ...]
    engine: str
    margin: float
    near_tie: bool
    prompt_sha256: str
    prompt_version: str
    letter_mass: float | None
    support: float | None
    pair_logits: dict[str, list[float]] | None
    calibrated: CalibratedView | None


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to a question: probabilities by option, in its order, and what goes with them.

    `evidence` is None where only one option was offered and no model was asked.
    """

    probabilities: dict[str, float]
    evidence: Evidence | None


@dataclass(frozen=True, slots=True)
class Asked:
    """The answers by question id, and the tokens read for them, the state's counted once.

    `cached_tokens` of those came from the prefix cache.
    """

    answers: dict[str, Answered]
    input_tokens: int
    cached_tokens: int


class TypedAsker:
    """Asks typed questions of the engine that a served model names."""

    def __init__(self, asker: Asker) -> None:
        self._asker = asker

    def wishes(self, model: ServedModel, headers: Mapping[str, str]) -> Wishes:
        """Read what a request's headers ask for.

        Raises:
            InvalidRequest: as `Wishes.of` raises it.
        """
        return Wishes.of(headers, self._asker.table(model.engine))

    async def ask(
        self,
        model: ServedModel,
        state: JsonState,
        questions: Sequence[Question],
        wishes: Wishes,
        arrived_s: float,
    ) -> Asked:
        """Answer all questions in one call over one reading of the state.

        Raises:
            ValueError: an engine gave other options than it was asked for.
            RequestError: as `Asker.shared` raises it.
        """
        answers = {
            one.id: Answered({one.options[0].id: 1.0}, None)
            for one in questions
            if len(one.options) == 1
        }
        word = KINDS[model.engine].word
        decisions = tuple(word(one) for one in questions if len(one.options) > 1)
        tokens = cached = 0
        if decisions:
            engine = self._asker.engine(model.engine)
            request = ScoreRequest(state, decisions, wishes.diagnostics)
            outcome = await self._asker.shared(engine, request, arrived_s)
            tokens = outcome.timing.prefix_tokens + outcome.timing.true_suffix_tokens
            cached = outcome.timing.prefix_tokens if outcome.timing.cache_hit else 0
            table = self._asker.table(model.engine)
            answers |= {
                scores.decision_id: Answered(
                    by_option(scores), to_evidence(scores, engine, table, wishes)
                )
                for scores in outcome.scores
            }
        return Asked({one.id: answers[one.id] for one in questions}, tokens, cached)


def to_evidence(
    scores: Scores, engine: Engine, table: CalibrationTable, wishes: Wishes
) -> Evidence:
    """Return what goes with an answer.

    A temperature is fitted on one version of the prompt; another version gets no calibrated view.

    Raises:
        InvalidRequest: the table does not hold the workload.
    """
    version = engine.prompt_version(len(scores.option_ids))
    workload = wishes.workload if table.binding.covers(version) else None
    pairs = scores.pair_logits
    return Evidence(
        option_ids=scores.option_ids,
        engine=engine.name,
        margin=margin(scores.probabilities),
        near_tie=is_near_tie(scores.option_logits, engine.identity.dtype),
        prompt_sha256=scores.prompt_sha256,
        prompt_version=version,
        letter_mass=scores.letter_mass,
        support=scores.support,
        pair_logits=dict(zip(scores.option_ids, map(list, pairs), strict=True)) if pairs else None,
        calibrated=table.view(workload, scores.option_logits) if workload else None,
    )


def told(evidence: Evidence | None) -> dict[str, Any]:
    """Return what goes with an answer as JSON, without what is None."""
    if evidence is None:
        return {"trivial": True}
    view = evidence.calibrated
    found = {
        "margin": evidence.margin,
        "near_tie": evidence.near_tie,
        "prompt_sha256": evidence.prompt_sha256,
        "prompt_version": evidence.prompt_version,
        "engine": evidence.engine,
        "letter_mass": evidence.letter_mass,
        "support": evidence.support,
        "pair_logits": evidence.pair_logits,
        "calibrated": view
        and {
            "workload": view.workload,
            "temperature": view.temperature,
            "probabilities": view.by_option(evidence.option_ids),
        },
    }
    return {key: value for key, value in found.items() if value is not None}


def by_option(scores: Scores) -> dict[str, float]:
    """Return the native probabilities by option, in order.

    Raises:
        ValueError: their numbers differ.
    """
    return dict(zip(scores.option_ids, scores.probabilities, strict=True))
