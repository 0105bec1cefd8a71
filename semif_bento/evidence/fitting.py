"""Calibrate one workload: what is too little to fit on, the table that a service reads.

Knows nothing of how rows are scored or how a report looks.
"""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from semif_bento.calibration import Provenance, load_calibration
from semif_bento.decisions import ModelIdentity
from semif_bento.engine.kind import EngineKind
from semif_bento.engine.registry import KINDS, LETTERS
from semif_bento.errors import EvidenceError, StartupError
from semif_bento.evidence.metrics import Answers
from semif_bento.evidence.scoring import ScoredRows
from semif_bento.evidence.temperature import FOLDS, HIGHEST, LOWEST, Evaluation

FEWEST_ROWS = 50
FEWEST_GROUPS = 4 * FOLDS


def to_answers(scored: ScoredRows) -> Answers:
    """Return scored, labelled rows as numbers."""
    return Answers.of(
        [scores.option_logits for scores in scored.scores],
        [row.answer_index for row in scored.rows],
        [row.group for row in scored.rows],
    )


def find_doubts(scored: ScoredRows, answers: Answers, kind: EngineKind = LETTERS) -> list[str]:
    """Return one sentence for each reason not to trust a fit, before anything is fitted.

    Raises:
        EvidenceError: there are fewer groups than folds, so nothing can be measured at all.
    """
    groups = len(set(answers.groups.tolist()))
    if groups < FOLDS:
        raise EvidenceError(f"{groups} groups of rows are too few; {FOLDS} are the least.")
    doubts = []
    if len(answers) < FEWEST_ROWS:
        doubts.append(f"Too few rows: {len(answers)}, and {FEWEST_ROWS} are the least.")
    if groups < FEWEST_GROUPS:
        doubts.append(f"Too few groups: {groups}, and {FEWEST_GROUPS} are the least.")
    if len({row.answer for row in scored.rows}) == 1:
        doubts.append("One class only: every row has the same right option.")
    if kind.reads_order and len({int(place) for place in answers.right}) == 1:
        doubts.append("One place only: the right option always stands at the same letter.")
    if answers.is_right.all():
        doubts.append("Every answer is right: no temperature is low enough for that.")
    return doubts


def find_faults(evaluation: Evaluation) -> list[str]:
    """Return one sentence for each reason not to trust what was fitted."""
    if not evaluation.at_bound:
        return []
    return [
        f"The temperature ran to its bound ({evaluation.temperature:.3g}; the range is "
        f"{LOWEST:g} to {HIGHEST:g}): the likelihood has no minimum inside, so the scores say "
        "nothing that a temperature could correct."
    ]


def write_table(path: Path, workload: str, temperature: float, provenance: Provenance) -> None:
    """Put a workload into a table file, whole or not at all; other workloads stay as they are.

    Raises:
        EvidenceError: the file is no table, holds a workload of another model or engine, or cannot
            be written; it is left as it was.
    """
    table: dict[str, Any] = {}
    try:
        if path.exists():
            others = load_calibration(path, KINDS[provenance.engine].binding)
            others.require_model(provenance.model_source, provenance.model_revision)
            table = json.loads(path.read_text(encoding="utf-8"))
        table[workload] = {"temperature": temperature, "provenance": asdict(provenance)}
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        draft.write_text(json.dumps(table, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        draft.replace(path)
    except StartupError as exc:
        raise EvidenceError(f"{path} cannot take the workload. {exc}") from exc
    except OSError as exc:
        raise EvidenceError(f"{path} cannot be written: {exc.strerror}.") from exc


def to_provenance(
    evaluation: Evaluation,
    answers: Answers,
    model: ModelIdentity,
    data_sha256: str,
    kind: EngineKind = LETTERS,
) -> Provenance:
    """Return what a table says about a fitted temperature; it holds no date, so that the same
    data and model give the same bytes."""
    return Provenance(
        engine=kind.name,
        model_source=model.source,
        model_revision=model.revision,
        dtype=model.dtype,
        prompt_version=kind.binding.prompt_version,
        data_sha256=data_sha256,
        rows=len(answers),
        groups=len(set(answers.groups.tolist())),
        accuracy=evaluation.chance.accuracy,
        nll_raw=evaluation.raw.nll.value,
        nll_out_of_fold=evaluation.out_of_fold.nll.value,
        brier_raw=evaluation.raw.brier.value,
        brier_out_of_fold=evaluation.out_of_fold.brier.value,
        ece_raw=evaluation.raw.ece.value,
        ece_out_of_fold=evaluation.out_of_fold.ece.value,
    )


def find_slices(scored: ScoredRows, answers: Answers) -> tuple[tuple[str, int, int], ...]:
    """Return `(tag, rows, right)` for every tag of the rows, in alphabetical order."""
    counts: dict[str, list[int]] = {}
    for row, is_right in zip(scored.rows, answers.is_right, strict=True):
        for name, value in row.tags.items():
            count = counts.setdefault(f"{name}: {value}", [0, 0])
            count[0] += 1
            count[1] += int(is_right)
    return tuple((tag, rows, right) for tag, (rows, right) in sorted(counts.items()))
