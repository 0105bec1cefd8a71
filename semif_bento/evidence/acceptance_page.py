"""The acceptance as one HTML page that needs nothing else; knows nothing of how it was found."""

from collections.abc import Sequence
from html import escape
from pathlib import Path

from semif_bento.errors import EvidenceError
from semif_bento.evidence.acceptance import Acceptance
from semif_bento.evidence.capacity import Cell
from semif_bento.evidence.checks import Check
from semif_bento.evidence.comparison import Movement
from semif_bento.evidence.diagrams import draw_capacity, draw_gaps
from semif_bento.evidence.page import bullets, render, table


def write_page(path: Path, found: Acceptance, movements: Sequence[Movement]) -> None:
    """Write the page.

    Raises:
        EvidenceError: it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(render_page(found, movements), encoding="utf-8")
    except OSError as exc:
        raise EvidenceError(f"{path} cannot be written: {exc.strerror}.") from exc


def render_page(found: Acceptance, movements: Sequence[Movement] = ()) -> str:
    """Return the whole page; everything that came from outside is escaped."""
    parts = [
        _head(found),
        *map(_sentence, found.sentences()),
        "<h2>Six checks</h2>",
        table(("", "check", "found", "bar"), map(_check_row, found.checks)),
    ]
    if movements:
        rows = ((m.name, m.old, m.new, m.verdict) for m in movements)
        cells = (tuple(map(escape, row)) for row in rows)
        parts += ["<h2>Against the earlier run</h2>", table(("", "then", "now", ""), cells)]
    parts += [
        "<h2>How far answers differ</h2>",
        '<p class="quiet">One dot a row: left of the line is noise. Only the shuffled rows, the '
        "negative control, belong to its right.</p>",
        draw_gaps(found.gaps, found.noise.allowed),
        "<h2>What fits</h2>",
        _capacity(found.cells),
        "<h2>What was measured</h2>",
        table(("", ""), ((name, f"<code>{escape(value)}</code>") for name, value in _facts(found))),
    ]
    if found.row_errors:
        parts += ["<h2>Rows left out</h2>", bullets(found.row_errors)]
    return render(f"Acceptance of {found.model.source}", parts)


def _head(found: Acceptance) -> str:
    verdict, word = ("pass", "accepted") if found.passed else ("fail", "not accepted")
    failed = sum(not check.passed for check in found.checks)
    words = f"{word}: {len(found.checks) - failed} of {len(found.checks)} checks pass"
    return (
        f'<h1>Acceptance <span class="verdict {verdict}">{words}</span></h1>'
        f'<p class="quiet">{escape(found.model.source)} · {escape(found.model.dtype)} on '
        f"{escape(found.device_name)} · {escape(found.made_at)} · semif-bento "
        f"{escape(found.version)}</p>"
    )


def _sentence(text: str) -> str:
    if text.startswith("**"):
        bold, _, rest = text.removeprefix("**").partition("**")
        return f'<p class="alert"><b>{escape(bold)}</b>{escape(rest)}</p>'
    return f"<p>{escape(text)}</p>"


def _check_row(check: Check) -> tuple[str, ...]:
    verdict = "pass" if check.passed else "fail"
    found = escape(check.number) + bullets(check.notes)
    badge = f'<span class="verdict {verdict}">{verdict}</span>'
    return badge, f"<b>{escape(check.name)}</b>", found, escape(check.bar)


def _capacity(cells: Sequence[Cell]) -> str:
    decisions = sorted({cell.decisions for cell in cells})
    tokens = sorted({cell.state_tokens for cell in cells})
    by_size = {(cell.decisions, cell.state_tokens): cell for cell in cells}
    rows = [
        (str(count), *(_tell_cell(by_size[count, size]) for size in tokens)) for count in decisions
    ]
    header = ("decisions", *(f"{size} state tokens" for size in tokens))
    seconds = [(n, [by_size[n, size].seconds for size in tokens]) for n in decisions]
    pictures = [draw_capacity(tokens, seconds, "seconds")]
    if any(cell.peak_mib is not None for cell in cells):
        peaks = [(n, [by_size[n, size].peak_mib for size in tokens]) for n in decisions]
        pictures.append(draw_capacity(tokens, peaks, "peak MiB over the weights"))
    return table(header, rows) + f'<div class="pictures">{"".join(pictures)}</div>'


def _tell_cell(cell: Cell) -> str:
    if cell.failure:
        return "out of memory"
    memory = (
        f"{cell.reserved_gib:.2f} GiB reserved"
        if cell.peak_mib is None
        else f"{cell.peak_mib:.0f} MiB"
    )
    groups = "" if cell.groups == 1 else f", {cell.groups} groups"
    return f"{cell.seconds:.2f} s, {memory}{groups}"


def _facts(found: Acceptance) -> list[tuple[str, str]]:
    model = found.model
    return [
        ("where", found.place),
        ("model", f"{model.source} at {model.revision}"),
        ("libraries", f"torch {model.torch_version}, transformers {model.transformers_version}"),
        ("prompt", found.prompt_version),
        ("rows", f"{len(found.answers)}, SHA-256 of their file {found.data_sha256}"),
        ("seed", str(found.seed)),
    ]
