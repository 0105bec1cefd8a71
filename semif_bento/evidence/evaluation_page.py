"""An evaluation as a table, as JSON and as one HTML page, all of the same numbers.

Knows nothing of how they were found.
"""

import json
from dataclasses import asdict
from html import escape
from pathlib import Path

from semif_bento.errors import EvidenceError
from semif_bento.evidence.diagrams import draw_reliability_svg
from semif_bento.evidence.evaluation import EngineQuality, Evaluation
from semif_bento.evidence.page import bullets, render, table
from semif_bento.evidence.quality import RISK, Flips, Quality

REPORT, PAGE = "report.json", "report.html"
HEADER = (
    "question",
    "n ",
    "right ",
    "95 % interval ",
    "majority ",
    "ECE ",
    "reversed ",
    "rotated ",
    f"at {RISK:.0%} risk ",
    "s ",
)
"""A name that ends in a space heads a column of numbers."""
LEGEND = (
    "right: share of right answers, with Wilson's interval; majority: the same for who always "
    "gives the most frequent right answer. ECE: 15 bins, native probabilities. reversed, rotated: "
    "share of answers that change with the order of the options, near ties among them in "
    f"parentheses. At {RISK:.0%} risk: largest share of rows, the surest first, of which no more "
    "are wrong. s: median seconds a decision, asked by itself."
)


def figures_table(found: EngineQuality) -> list[tuple[str, ...]]:
    """Return the cells of an engine's table, one row a question, under `HEADER`."""
    return [_cells(quality) for quality in found.questions]


def write_report(directory: Path, found: Evaluation) -> None:
    """Write the JSON and the page into an existing directory.

    Raises:
        EvidenceError: a file cannot be written.
    """
    try:
        text = json.dumps(asdict(found), indent=2, ensure_ascii=False)
        (directory / REPORT).write_text(text + "\n", encoding="utf-8")
        (directory / PAGE).write_text(render_page(found), encoding="utf-8")
    except OSError as exc:
        raise EvidenceError(f"{directory} cannot be written: {exc.strerror}.") from exc


def render_page(found: Evaluation) -> str:
    """Return the whole page; everything that came from outside is escaped."""
    limit = "all rows" if found.limit is None else f"up to {found.limit} rows a question"
    parts = [
        "<h1>Evaluation</h1>",
        f'<p class="quiet">{escape(found.data)}, {limit}, seed {found.seed} · '
        f"{escape(found.place)} · {escape(found.made_at)} · semif-bento {escape(found.version)} · "
        f"SHA-256 of the rows <code>{escape(found.data_sha256)}</code></p>",
        f"<p>{escape(LEGEND)}</p>",
        *(_engine(each) for each in found.engines),
    ]
    if found.row_errors:
        parts += ["<h2>Rows that could not be read</h2>", bullets(found.row_errors)]
    return render("Evaluation", parts)


def _engine(found: EngineQuality) -> str:
    model = found.model
    rows = (tuple(map(escape, cells)) for cells in figures_table(found))
    parts = [
        f"<h2>{escape(found.engine)}</h2>",
        f'<p class="quiet">{escape(model.source)} at {escape(model.revision)}, '
        f"{escape(model.dtype)} on {escape(model.device)}; {escape(found.prompt_version)}</p>",
        table(HEADER, rows),
        f'<div class="pictures">{"".join(map(_diagram, found.questions))}</div>',
    ]
    if found.row_errors:
        parts += ["<h3>Rows that it refused</h3>", bullets(found.row_errors)]
    return "\n".join(parts)


def _diagram(quality: Quality) -> str:
    caption = f"{escape(quality.question)}, {quality.rows} rows"
    return (
        f"<figure>{draw_reliability_svg(quality.bins)}<figcaption>{caption}</figcaption></figure>"
    )


def _cells(quality: Quality) -> tuple[str, ...]:
    low, high = quality.interval
    return (
        quality.question,
        str(quality.rows),
        f"{quality.accuracy:.3f}",
        f"{low:.3f} to {high:.3f}",
        f"{quality.majority:.3f}",
        f"{quality.ece:.3f}",
        _tell_flips(quality.reversed),
        _tell_flips(quality.rotated),
        f"{quality.coverage:.3f}",
        "–" if quality.seconds is None else f"{quality.seconds:.3f}",
    )


def _tell_flips(flips: Flips) -> str:
    near = f" ({flips.near_ties})" if flips.near_ties else ""
    return f"{flips.share:.3f}{near}"
