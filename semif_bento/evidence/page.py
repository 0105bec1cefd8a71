"""The frame of the HTML pages: one file that needs nothing else; knows nothing of what it shows."""

from collections.abc import Iterable, Sequence
from html import escape

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1b1f24; margin: 2rem auto; max-width: 62rem;
       padding: 0 1rem; }
h1 { font-size: 1.5rem; margin: 0 0 .2rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
.verdict { display: inline-block; padding: .1rem .7rem; border-radius: 1rem; color: #fff; }
.pass { background: #2a7d4f; } .fail { background: #c2452d; } .quiet { color: #57606a; }
table { border-collapse: collapse; width: 100%; }
th { text-align: left; font-weight: 600; color: #57606a; font-size: .85rem; }
th, td { padding: .4rem .7rem .4rem 0; border-bottom: 1px solid #e3e6ea; vertical-align: top; }
td.figure, th.figure { text-align: right; font-variant-numeric: tabular-nums; }
.alert { background: #fdf1e7; border-left: 4px solid #c2452d; padding: .6rem 1rem; }
ul { margin: .2rem 0; padding-left: 1.1rem; color: #57606a; font-size: .9rem; }
.pictures { display: flex; flex-wrap: wrap; gap: 1rem; } svg { max-width: 100%; height: auto; }
figure { margin: 0; } figcaption { font-size: .85rem; color: #57606a; text-align: center; }
code { font-size: .85em; overflow-wrap: anywhere; }
"""


def render(title: str, parts: Iterable[str]) -> str:
    """Return a whole page; `title` is escaped here, the parts are HTML."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>"
        f"<body>\n{chr(10).join(parts)}\n</body></html>\n"
    )


def table(header: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of cells that are HTML."""
    head = "".join(f"<th>{cell}</th>" for cell in header)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def bullets(lines: Sequence[str]) -> str:
    """Return a list of plain lines, escaped; nothing where there is none."""
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f"<ul>{items}</ul>" if lines else ""
