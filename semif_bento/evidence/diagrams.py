"""Draw the pictures of the reports; knows nothing of how their numbers were found."""

import io
from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from semif_bento.evidence.metrics import Bin

INK, MUTED, BLUE, RED = "#1b1f24", "#8b949e", "#2f6fb5", "#c2452d"


def draw_reliability(path: Path, panels: Sequence[tuple[str, tuple[Bin, ...]]]) -> None:
    """Write a PNG with one reliability diagram a panel.

    Args:
        path: where the PNG goes; its folder exists.
        panels: a title and its bins; bars show accuracy, red shows how far confidence is off.
    """
    figure = Figure(figsize=(4.6 * len(panels), 4.6), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, (title, bins) in zip(axes, panels, strict=True):
        _draw_bins(axis, title, bins)
    figure.savefig(path, dpi=150, metadata={"Software": None})


def draw_reliability_svg(bins: tuple[Bin, ...]) -> str:
    """Return an SVG of one reliability diagram, as `draw_reliability` draws it."""
    figure = Figure(figsize=(3.4, 3.2), layout="constrained")
    axis = figure.subplots()
    _draw_bins(axis, "", bins)
    return _to_svg(figure, axis)


def draw_gaps(panels: Sequence[tuple[str, Sequence[float]]], noise: float) -> str:
    """Return an SVG with one row of dots a panel: each row's largest logit gap, beside the noise.

    Args:
        panels: a title and one gap (nats, 0 or more) a row; a panel may be empty.
        noise: the gap up to which two right ways to compute a row may differ.
    """
    figure = Figure(figsize=(7.6, 0.55 * len(panels) + 0.9), layout="constrained")
    axis = figure.subplots()
    for place, (_, gaps) in enumerate(panels):
        jitter = [place + 0.22 * ((7 * index) % 11 - 5) / 5 for index in range(len(gaps))]
        axis.scatter(gaps, jitter, s=14, color=BLUE, alpha=0.55, linewidths=0)
    axis.axvline(noise, color=RED, linewidth=1)
    axis.text(noise, len(panels) - 0.45, " noise", color=RED, fontsize=8, va="bottom")
    axis.set_yticks(range(len(panels)), [title for title, _ in panels])
    axis.set_ylim(len(panels) - 0.4, -0.6)
    axis.set_xscale("symlog", linthresh=max(noise / 10, 1e-9))
    axis.set_xlim(left=0)
    axis.set_xlabel("largest logit gap of a row (nats)")
    return _to_svg(figure, axis)


def draw_capacity(
    state_tokens: Sequence[int], series: Sequence[tuple[int, Sequence[float | None]]], unit: str
) -> str:
    """Return an SVG of one line a number of decisions, over state tokens.

    Args:
        state_tokens: places on the x axis.
        series: a number of decisions and one value a place; None where nothing was measured.
        unit: what the values are.
    """
    figure = Figure(figsize=(3.7, 2.9), layout="constrained")
    axis = figure.subplots()
    for index, (decisions, values) in enumerate(series):
        shade = 0.35 + 0.65 * (index + 1) / len(series)
        known = [(x, y) for x, y in zip(state_tokens, values, strict=True) if y is not None]
        if known:
            axis.plot(*zip(*known, strict=True), marker="o", ms=3, color=BLUE, alpha=shade)
            axis.annotate(f" {decisions}", known[-1], fontsize=8, color=INK, va="center")
    axis.set_xlabel("state tokens; a line's number is its decisions")
    axis.set_ylabel(unit)
    axis.set_ylim(bottom=0)
    axis.margins(x=0.12)
    return _to_svg(figure, axis)


def _draw_bins(axis: Axes, title: str, bins: tuple[Bin, ...]) -> None:
    total = sum(each.count for each in bins)
    for each in bins:
        if each.accuracy is None or each.confidence is None:
            continue
        width = each.high - each.low
        middle = (each.low + each.high) / 2
        axis.bar(
            middle, each.accuracy, width * 0.92, color=BLUE, alpha=0.35 + 0.65 * each.count / total
        )
        axis.plot([middle, middle], [each.accuracy, each.confidence], color=RED, linewidth=2)
        axis.text(middle, 0.015, str(each.count), ha="center", fontsize=7, color=INK)
    axis.plot([0, 1], [0, 1], color=MUTED, linestyle="--", linewidth=1)
    axis.set_xlim(0, 1)
    axis.set_ylim(0, 1)
    axis.set_title(title, fontsize=10)
    axis.set_xlabel("confidence of the first option")
    axis.set_ylabel("share that is right (numbers: rows in a bin)")
    _calm(axis)


def _to_svg(figure: Figure, axis: Axes) -> str:
    _calm(axis)
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    svg = text.getvalue()
    return svg[svg.index("<svg") :]


def _calm(axis: Axes) -> None:
    axis.spines[["top", "right"]].set_visible(False)
    axis.tick_params(labelsize=8)
    axis.set_xlabel(axis.get_xlabel(), fontsize=8)
    axis.set_ylabel(axis.get_ylabel(), fontsize=8)
