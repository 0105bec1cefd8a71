"""Examine a deployment: score what the checks need, run them in order, collect what they found.

Knows nothing of files, pages or arguments.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from tqdm import tqdm

from semif_bento import __version__
from semif_bento.decisions import JsonState, ModelIdentity, Scorer, ScoreRequest, Scores
from semif_bento.errors import EvidenceError
from semif_bento.evidence import checks
from semif_bento.evidence.agreement import Agreement, compare_answers
from semif_bento.evidence.calibration_report import tell_chance
from semif_bento.evidence.capacity import Cell, check_memory
from semif_bento.evidence.checks import Check
from semif_bento.evidence.fitting import to_answers
from semif_bento.evidence.metrics import Chance, compare_with_chance
from semif_bento.evidence.noise import Noise, take_noise
from semif_bento.evidence.reference import Reference
from semif_bento.evidence.rows import Row, RowFile
from semif_bento.evidence.scoring import ScoredRows, score_rows
from semif_bento.evidence.speed import check_speed
from semif_bento.evidence.target import Target
from semif_bento.protocol import PROMPT_VERSION

COMPANIONS = 4
"""Decisions of other rows that are asked beside a state's own, so that branches differ."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run draws, how often it times, and an optional bar (ms) for the median time."""

    seed: int = 0
    runs: int = 5
    max_p50_ms: float | None = None


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
    complaints: tuple[str, ...]
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

    Rows that the reference lacks or the target refuses are left out and listed.

    Raises:
        EvidenceError: no row is left, or the service is gone or has changed.
        RequestError: the scorer failed.
    """
    scorer = target.scorer
    first = score_rows(scorer, file.rows, "direct")
    first, missing = _with_reference(first, reference)
    theirs = [reference[row.decision.id] for row in first.rows]
    second = score_rows(scorer, first.rows, "direct again")
    alone, beside = _score_shared(scorer, first.rows, target.max_decisions)
    noise = take_noise(
        repeated=compare_answers(first.scores, second.scores, 0).gap,
        regrouped=compare_answers(alone, beside, 0).gap,
        answers=first.scores,
        dtype=scorer.identity.dtype,
    )
    control = _score_control(scorer, first, plan.seed)
    compared = {
        "parity": compare_answers(first.scores, theirs, noise.allowed),
        "run twice": compare_answers(first.scores, second.scores, noise.allowed),
        "shuffled": _compare_control(control, reference, noise),
        "shared": compare_answers(beside, first.scores, noise.allowed),
    }
    chance = _chance(first)
    at_chance = chance is not None and chance.at_chance
    memory = check_memory(target)
    found = (
        checks.check_parity(compared["parity"], noise),
        checks.check_noise(noise),
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
        complaints=(*file.complaints, *first.complaints, *missing),
        chance=chance,
        noise=noise,
        checks=found,
        gaps=tuple((name, agreement.gaps) for name, agreement in compared.items()),
        cells=memory.cells,
        answers=tuple(map(_answer, first.rows, first.scores)),
    )


def _with_reference(scored: ScoredRows, reference: Reference) -> tuple[ScoredRows, tuple[str, ...]]:
    pairs = list(zip(scored.rows, scored.scores, strict=True))
    kept = [pair for pair in pairs if pair[0].decision.id in reference]
    missing = [row for row, _ in pairs if row.decision.id not in reference]
    if not kept:
        raise EvidenceError("The reference holds none of the rows.")
    complaints = tuple(f"line {row.line}: not in the reference." for row in missing)
    rows, scores = zip(*kept, strict=True)
    return replace(scored, rows=rows, scores=scores), complaints


def _score_shared(
    scorer: Scorer, rows: Sequence[Row], max_decisions: int
) -> tuple[list[Scores], list[Scores]]:
    """Score each state's rows in shared calls, alone and beside decisions of other rows.

    Returns:
        Both sets of answers, in the order of the rows.
    """
    by_state: dict[str, list[int]] = defaultdict(list)
    for index, row in enumerate(rows):
        by_state[repr(row.state)].append(index)
    alone: dict[int, Scores] = {}
    beside: dict[int, Scores] = {}
    for all_places in tqdm(by_state.values(), desc="shared", unit="state"):
        for start in range(0, len(all_places), max_decisions):
            places = all_places[start : start + max_decisions]
            own = [rows[place].decision for place in places]
            free = min(COMPANIONS, max_decisions - len(own))
            others = [rows[(places[-1] + step) % len(rows)].decision for step in range(1, free + 1)]
            companions = [replace(o, id=f"companion {n}") for n, o in enumerate(others)]
            state: JsonState = rows[places[0]].state
            for answers, asked in ((alone, own), (beside, [*own, *companions])):
                found = scorer.shared(ScoreRequest(state, tuple(asked))).scores
                answers.update(zip(places, found[: len(places)], strict=True))
    return [alone[place] for place in sorted(alone)], [beside[place] for place in sorted(beside)]


def _score_control(scorer: Scorer, scored: ScoredRows, seed: int) -> ScoredRows:
    return score_rows(scorer, checks.shuffle_descriptions(scored.rows, seed), "shuffled")


def _compare_control(control: ScoredRows, reference: Reference, noise: Noise) -> Agreement:
    theirs = [reference[row.decision.id] for row in control.rows]
    return compare_answers(control.scores, theirs, noise.allowed)


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
