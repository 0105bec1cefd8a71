"""Write what a calibration found: JSON for machines, Markdown and a PNG for people.

Knows nothing of how it was found.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from semif_bento import __version__
from semif_bento.decisions import ModelIdentity
from semif_bento.errors import EvidenceError
from semif_bento.evidence.diagrams import draw_reliability
from semif_bento.evidence.metrics import Chance
from semif_bento.evidence.temperature import Evaluation, Interval

REPORT, PAGE, PICTURE = "report.json", "report.md", "reliability.png"


@dataclass(frozen=True, slots=True)
class CalibrationReport:
    """What was fitted, on what, and why it may not be trusted."""

    workload: str
    engine: str
    prompt_version: str
    model: ModelIdentity
    data_sha256: str
    rows: int
    groups: int
    seed: int
    evaluation: Evaluation
    doubts: tuple[str, ...]
    row_errors: tuple[str, ...]
    slices: tuple[tuple[str, int, int], ...]

    def sentences(self) -> list[str]:
        """Return what a reader must know before the numbers."""
        return [tell_chance(self.evaluation.chance), *self.doubts]


def tell_chance(chance: Chance) -> str:
    """Return the accuracy beside guessing, in one sentence."""
    low, high = chance.interval
    found = (
        f"{chance.right} of {chance.rows} answers are right ({chance.accuracy:.3f}, 95 % interval "
        f"{low:.3f} to {high:.3f}); guessing gets {chance.chance:.3f}."
    )
    if chance.at_chance:
        return f"**The model is at chance on these rows**: {found} Don't use its answers."
    return found


def figures_table(evaluation: Evaluation) -> list[tuple[str, str, str, str]]:
    """Return name, raw, out of fold and change of every figure, each with its interval."""
    same = f"{evaluation.chance.accuracy:.3f}"
    rows = [("accuracy", same, same, "0 (a temperature never moves the winner)")]
    for name, label in (("nll", "NLL (nats)"), ("brier", "Brier"), ("ece", "ECE, 15 bins")):
        columns = (evaluation.raw, evaluation.out_of_fold, evaluation.change)
        raw, after, change = (getattr(column, name) for column in columns)
        rows.append((label, _tell(raw), _tell(after), _tell(change, "+")))
    return rows


def write_report(directory: Path, report: CalibrationReport) -> None:
    """Write the three files into an existing directory.

    Raises:
        EvidenceError: a file cannot be written.
    """
    evaluation = report.evaluation
    panels = [
        ("raw, T = 1", evaluation.bins_raw),
        ("out of fold", evaluation.bins_out_of_fold),
    ]
    machine = {"version": __version__, **asdict(report)}
    try:
        text = json.dumps(machine, indent=2, ensure_ascii=False)
        (directory / REPORT).write_text(text + "\n", encoding="utf-8")
        (directory / PAGE).write_text(_render(report), encoding="utf-8")
        draw_reliability(directory / PICTURE, panels)
    except OSError as exc:
        raise EvidenceError(f"{directory} cannot be written: {exc.strerror}.") from exc


def _render(report: CalibrationReport) -> str:
    evaluation, model = report.evaluation, report.model
    folds = ", ".join(f"{value:.3g}" for value in evaluation.fold_temperatures)
    parts = [
        f"# Calibration of `{report.workload}`",
        "\n".join(f"- {sentence}" for sentence in report.sentences()),
        f"**T = {evaluation.temperature:.4g}**, fitted on {report.rows} rows in {report.groups} "
        f"groups by minimising the negative log-likelihood; fitted without one fold of five: "
        f"{folds}.",
        _markdown(("", "raw", "out of fold", "change"), figures_table(evaluation)),
        f"![Reliability before and after]({PICTURE})",
        "Intervals are 95 % percentile bootstrap over groups; the change is resampled in pairs. "
        "Out of fold: each row at a temperature that was fitted without its fold; a group is "
        "never split. ECE: top-label confidence, 15 equal-width bins.",
        f"Model `{model.source}` at `{model.revision}`, {model.dtype}; engine {report.engine}, "
        f"prompt `{report.prompt_version}`; "
        f"data SHA-256 `{report.data_sha256}`; seed {report.seed}; semif-bento {__version__}.",
    ]
    if report.slices:
        cells = [(name, f"{right} of {rows}") for name, rows, right in report.slices]
        parts.insert(5, _markdown(("slice", "right"), cells))
    if report.row_errors:
        parts.append("Left out:\n\n" + "\n".join(f"- {each}" for each in report.row_errors))
    return "\n\n".join(parts) + "\n"


def _markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _tell(found: Interval, sign: str = "") -> str:
    return f"{found.value:{sign}.3f} ({found.low:{sign}.3f} to {found.high:{sign}.3f})"
