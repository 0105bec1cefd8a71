"""Plain text tables and bars for a terminal; knows nothing of what stands in them."""

from collections.abc import Sequence

BAR_WIDTH = 20


def render_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows under a header; a column is right-aligned when its header ends in a space.

    Raises:
        ValueError: a row has another number of cells than the header.
    """
    table = [[cell.strip() for cell in header], *rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    to_right = [cell.endswith(" ") for cell in header]
    lines = []
    for row in table:
        cells = zip(row, widths, to_right, strict=True)
        lines.append("  ".join(c.rjust(w) if right else c.ljust(w) for c, w, right in cells))
    return "\n".join(line.rstrip() for line in lines)


def bar(share: float) -> str:
    """Return a bar for a share in 0..1."""
    return "█" * round(share * BAR_WIDTH)
