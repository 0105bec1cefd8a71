"""Examine a deployment: score what the checks need, run them in order, collect what they found.

Knows nothing of files, pages or arguments.
"""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from tqdm import tqdm

from semif_bento import __version__
from semif_bento.decisions import Decision, ModelIdentity, ScoreRequest, Scores
from semif_bento.errors import EvidenceError, InvalidRequest
from semif_bento.evidence import checks
from semif_bento.evidence.agreement import compare_answers
from semif_bento.evidence.calibration_report import tell_chance
from semif_bento.evidence.capacity import Cell, check_memory
from semif_bento.evidence.checks import Check
from semif_bento.evidence.fitting import to_answers
from semif_bento.evidence.metrics import Chance, compare_with_chance
from semif_bento.evidence.noise import Noise, take_noise
from semif_bento.evidence.reference import Reference
from semif_bento.evidence.rows import Row, RowFile, choose_rows
from semif_bento.evidence.scoring import ScoredRows, TargetScorer, score_rows
from semif_bento.evidence.speed import check_speed
from semif_bento.evidence.target import Target
from semif_bento.protocol import PROMPT_VERSION

COMPANIONS = 4
"""Decisions of other rows that are asked beside a state's own, so that branches differ."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run draws, how often it times, an optional bar (ms) for the median time, and how
    many rows are scored again for the noise and the control (None: as `choose_rows` does)."""

    seed: int = 0
    runs: int = 5
    max_p50_ms: float | None = None
    sample_rows: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """One row's answer as the report keeps it."""

    row_id: str
    row_sha256: str
    prompt_sha256: str
    option_ids: tuple[str, ...]
    option_logits: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Everything a run found; `gaps` are each comparison's largest logit gap a row (nats)."""

    version: str
    made_at: str
    place: str
    model: ModelIdentity
    device_name: str
    prompt_version: str
    data_sha256: str
    seed: int
    row_errors: tuple[str, ...]
    chance: Chance | None
    noise: Noise
    checks: tuple[Check, ...]
    gaps: tuple[tuple[str, tuple[float, ...]], ...]
    cells: tuple[Cell, ...]
    answers: tuple[Answer, ...]

    @property
    def passed(self) -> bool:
        """Tell whether every check passed."""
        return all(check.passed for check in self.checks)

    def sentences(self) -> list[str]:
        """Return what a reader must know beside the checks."""
        if self.chance is None:
            return ["No row is labelled, so nothing is known of how often the answers are right."]
        return [tell_chance(self.chance)]


def examine(target: Target, file: RowFile, reference: Reference, plan: Plan) -> Acceptance:
    """Run the six checks.

    Rows that the target refuses are left out and listed; those that the reference lacks count in
    every check but parity.

    Raises:
        EvidenceError: the reference holds none of the rows, or the service is gone or has changed.
        RequestError: the scorer failed.
    """
    scorer = target.scorer
    first = score_rows(scorer, file.rows, "direct")
    ours, theirs = _match(first, reference)
    sample = choose_rows(first.rows, plan.sample_rows, scorer.identity.device)
    again = score_rows(scorer, sample, "direct again")
    alone, beside, crowded = _score_shared(scorer, first.rows, target.max_decisions)
    shuffled = checks.shuffle_descriptions(sample, plan.seed)
    control = score_rows(scorer, shuffled, "shuffled")
    noise = take_noise(
        repeated=compare_answers(again.scores, _same(first, again), 0).gap,
        regrouped=compare_answers(alone, beside, 0).gap,
        answers=first.scores,
        dtype=scorer.identity.dtype,
    )
    compared = {
        "parity": compare_answers(ours, theirs, noise.allowed),
        "run twice": compare_answers(again.scores, _same(first, again), noise.allowed),
        "shuffled": compare_answers(control.scores, _same(first, control), noise.allowed),
        "shared": compare_answers(beside, first.scores, noise.allowed),
    }
    chance = _chance(first)
    at_chance = chance is not None and chance.at_chance
    memory = check_memory(target)
    found = (
        checks.check_parity(compared["parity"], noise, len(first.rows)),
        checks.check_noise(noise, len(sample)),
        checks.check_control(compared["shuffled"], noise, at_chance, plan.seed),
        checks.check_shared(compared["shared"], noise),
        check_speed(target, plan.runs, plan.max_p50_ms),
        memory.check,
    )
    return Acceptance(
        version=__version__,
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        place=target.place,
        model=scorer.identity,
        device_name=scorer.status().device_name,
        prompt_version=PROMPT_VERSION,
        data_sha256=file.sha256,
        seed=plan.seed,
        row_errors=(*file.row_errors, *first.row_errors, *crowded),
        chance=chance,
        noise=noise,
        checks=found,
        gaps=tuple((name, agreement.gaps) for name, agreement in compared.items()),
        cells=memory.cells,
        answers=tuple(map(_answer, first.rows, first.scores)),
    )


def _match(scored: ScoredRows, reference: Reference) -> tuple[list[Scores], list[Scores]]:
    """Return our answers and the reference's, for the rows that it holds."""
    ours = [scores for scores in scored.scores if scores.decision_id in reference]
    if not ours:
        raise EvidenceError("The reference holds none of the rows.")
    return ours, [reference[scores.decision_id] for scores in ours]


def _same(scored: ScoredRows, others: ScoredRows) -> list[Scores]:
    """Return the answers to the rows that `others` holds, in its order."""
    by_id = {scores.decision_id: scores for scores in scored.scores}
    return [by_id[scores.decision_id] for scores in others.scores]


def _score_shared(
    scorer: TargetScorer, rows: Sequence[Row], max_decisions: int
) -> tuple[list[Scores], list[Scores], list[str]]:
    """Score each state's rows in shared calls, alone and beside decisions of other rows.

    Returns:
        Both sets of answers, in the order of the rows; and one sentence for each state that has
        no room for the others within the token limit, so that its rows are asked alone twice.
    """
    by_state: dict[str, list[int]] = defaultdict(list)
    for index, row in enumerate(rows):
        by_state[json.dumps(row.state)].append(index)
    alone: dict[int, Scores] = {}
    beside: dict[int, Scores] = {}
    crowded: list[str] = []
    for all_places in tqdm(by_state.values(), desc="shared", unit="state"):
        for start in range(0, len(all_places), max_decisions):
            places = all_places[start : start + max_decisions]
            own = [rows[place].decision for place in places]
            state = rows[places[0]].state
            first = scorer.shared(ScoreRequest(state, tuple(own))).scores
            asked = (*own, *_companions(rows, places[-1], max_decisions - len(own)))
            try:
                second = scorer.shared(ScoreRequest(state, asked)).scores
            except InvalidRequest as exc:
                crowded.append(f"line {rows[places[0]].line}: beside others: {exc.message}")
                second = scorer.shared(ScoreRequest(state, tuple(own))).scores
            alone.update(zip(places, first, strict=True))
            beside.update(zip(places, second[: len(places)], strict=True))
    order = range(len(rows))
    return [alone[place] for place in order], [beside[place] for place in order], crowded


def _companions(rows: Sequence[Row], place: int, free: int) -> list[Decision]:
    steps = range(1, min(COMPANIONS, free) + 1)
    others = [rows[(place + step) % len(rows)].decision for step in steps]
    return [replace(other, id=f"companion {n}") for n, other in enumerate(others)]


def _chance(scored: ScoredRows) -> Chance | None:
    labelled = [pair for pair in zip(scored.rows, scored.scores, strict=True) if pair[0].answer]
    if not labelled:
        return None
    rows, scores = zip(*labelled, strict=True)
    return compare_with_chance(to_answers(ScoredRows(rows, scores)))


def _answer(row: Row, scores: Scores) -> Answer:
    return Answer(
        row.decision.id, row.sha256, scores.prompt_sha256, scores.option_ids, scores.option_logits
    )
