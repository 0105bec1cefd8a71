"""Generated rows as a caller would send them, and the requests they become.

A row is the plain `{id, state, question, options}` that SemIf's reference takes too. Special tokens
are not among the texts: the reference would read them as control tokens.
"""

import random
from collections.abc import Sequence
from typing import Any

from semif_bento.decisions import Decision, Option, ScoreRequest

Row = dict[str, Any]

PUBLISHED_ROW: Row = {
    "id": "published",
    "state": "The optician ordered replacement lenses. The workshop confirms they have not yet "
    "been fitted to the customer's glasses.",
    "question": "Assess the claim: the replacement lenses have been fitted.",
    "options": [
        {"id": "supported", "description": "The evidence establishes the claim"},
        {"id": "insufficient", "description": "The evidence does not establish either"},
        {"id": "contradicted", "description": "The evidence establishes the opposite"},
    ],
}
PUBLISHED_SHA256 = "3cc9e3d1e4e07885afb7652e9c5f92a5b28168362a3d8e7f6e32e5189a4fccde"
PUBLISHED_TOKENS = 142

WORDS = (
    *("order", "refund", "delivered", "not", "yet", "policy", "permits", "manager", "said", "yes"),
    *("no", "total", "2024", "café", "naïve", "Straße", "東京", "привет", "नमस्ते", "مرحبا", "ไทย"),
    *("don't", "e\u0301"),
)
ENDS = (
    *("", ".", "!", "?", ":", ",", ";", ")", "}", "]", ">", "/", ":)", "...", "…", '"', "'", "\\"),
    *(
        "\n",
        "\n\n",
        "\t",
        " ",
        "  ",
        "5",
        "3.14",
        "%",
        "🙂",
        "👩‍👩‍👧",
        "é",
        "。",
        "،",
        "};",
        "</b>",
        "*/",
    ),
    *("\u200b", "\u0000", "`", "{}", "[]", "--", "C:\\temp\\", '\\"'),
)
SCALARS = (0, -1, 7, 3.5, 1e-9, 1e300, -0.0, 10**30 + 7, 12345678901234567890, True, False, None)


def generate(states: int, decisions_each: int, seed: int = 0) -> list[list[Row]]:
    """Return groups of rows; each group asks `decisions_each` questions about one state."""
    random_ = random.Random(seed)
    groups = []
    for index in range(states):
        state = _state(random_, index)
        groups.append(
            [
                {
                    "id": f"row-{index}-{place}",
                    "state": state,
                    "question": _question(random_),
                    "options": _options(random_, 2 + (index * decisions_each + place) % 15),
                }
                for place in range(decisions_each)
            ]
        )
    return groups


def request_of(rows: Sequence[Row], *, diagnostics: bool = False) -> ScoreRequest:
    """Return rows that share a state as one request."""
    decisions = tuple(
        Decision(
            row["id"],
            row["question"],
            tuple(Option(option["id"], option["description"]) for option in row["options"]),
        )
        for row in rows
    )
    return ScoreRequest(rows[0]["state"], decisions, diagnostics)


def row_about(state: object, question: str = "Did it succeed?") -> Row:
    """Return a plain yes-or-no row about a state."""
    options = [{"id": "yes", "description": "Yes"}, {"id": "no", "description": "No"}]
    return {"id": "row", "state": state, "question": question, "options": options}


def _text(random_: random.Random) -> str:
    return " ".join(random_.choices(WORDS, k=random_.randint(1, 6)))


def _state(random_: random.Random, index: int) -> object:
    if index % 4 == 0:
        return _text(random_) + random_.choice(ENDS)
    if index % 4 == 1:
        return {random_.choice(WORDS): _leaf(random_) for _ in range(random_.randint(1, 3))}
    if index % 4 == 2:
        return [_leaf(random_) for _ in range(random_.randint(1, 3))]
    turns = [{"role": "user", "content": _text(random_)}, {"role": "agent", "n": _leaf(random_)}]
    return {"messages": turns, "deep": [[{"x" * 3: [_leaf(random_)]}], {}], "": _leaf(random_)}


def _leaf(random_: random.Random) -> object:
    kind = random_.random()
    if kind < 0.7:
        return _text(random_) + random_.choice(ENDS)
    return random_.choice(SCALARS) if kind < 0.9 else random_.choice(("", [], {}))


def _question(random_: random.Random) -> str:
    start = random_.choice(("", "", "", *ENDS[1:]))
    return start + _text(random_) + random_.choice(("?", ".", "", '"'))


def _options(random_: random.Random, count: int) -> list[dict[str, str]]:
    return [
        {
            "id": f"{index}" + random_.choice(("", "", "é" * 300)),
            "description": random_.choice(("", " ", ".", _text(random_), random_.choice(ENDS))),
        }
        for index in range(count)
    ]
