"""The canary set of the benchmark sys1bench as rows of typed questions.

Knows nothing of engines: an engine words the rows as it words System One's questions, because they
pass through the schema of its route.
"""

import hashlib
import json
from importlib import resources
from pathlib import Path
from typing import Any

from semif_bento.api.systemone.questions import to_question
from semif_bento.api.systemone.schema import MAX_CHOICES, SystemOneRequest, check
from semif_bento.decisions import Decision, JsonState, Option
from semif_bento.errors import EvidenceError, RequestError
from semif_bento.evidence.rows import Row, RowFile

PACKAGE = "sys1bench"


def read_canary() -> RowFile:
    """Return every question of every item as a row; `tags` name the question and the domain.

    Raises:
        EvidenceError: the package is not installed, or its set is not what it was.
    """
    try:
        path = Path(str(resources.files(PACKAGE) / "data" / "canary" / "canary.jsonl"))
        content = path.read_bytes()
    except (ModuleNotFoundError, OSError) as exc:
        raise EvidenceError(
            f"{PACKAGE} is not installed; the dependency group `dev` holds it (make setup)."
        ) from exc
    rows: list[Row] = []
    for number, line in enumerate(content.splitlines(), start=1):
        try:
            rows += to_rows(number, json.loads(line))
        except (RequestError, ValueError, KeyError, TypeError, AttributeError) as exc:
            raise EvidenceError(
                f"Line {number} of {PACKAGE}'s canary set cannot be read: {type(exc).__name__}."
            ) from exc
    return RowFile(tuple(rows), (), hashlib.sha256(content).hexdigest())


def to_rows(line: int, item: dict[str, Any]) -> list[Row]:
    """Return an item's questions as rows, asked in the words in which sys1bench sends them.

    Raises:
        RequestError: System One's route would refuse it.
        KeyError, TypeError, ValueError, AttributeError: the item has another form.
    """
    sent = {name: _to_body(question) for name, question in item["questions"].items()}
    body = check(SystemOneRequest, {"model": "canary", "state": item["state"], "questions": sent})
    state: JsonState = item["state"]
    rows = []
    for name, given in item["questions"].items():
        asked = to_question(name, body.questions[name], MAX_CHOICES)
        options = tuple(Option(each.id, each.description, each.label) for each in asked.options)
        decision = Decision(f"{item['task_id']} {name}", asked.instructions, options, asked.kind)
        tags = {"question": name, "domain": item["domain"]}
        row = Row(line, state, decision, _right(given), item["task_id"], tags)
        if row.answer not in {option.id for option in options}:
            raise ValueError("The right option is not offered.")
        rows.append(row)
    return rows


def _to_body(question: dict[str, Any]) -> dict[str, Any]:
    """Return a question as sys1bench's own adapter for this route sends it."""
    said = {"type": question["type"], "instructions": question["instructions"]}
    match question["type"]:
        case "noul":
            return said
        case "choice":
            options = {each["key"]: each["description"] or None for each in question["criteria"]}
            return {**said, "criteria": options}
        case _:
            levels = [
                each["description"] or f"level {each['level']}" for each in question["criteria"]
            ]
            return {**said, "criteria": levels}


def _right(question: dict[str, Any]) -> str:
    right = question["ground_truth"]
    match question["type"]:
        case "noul":
            return "true" if right else "false"
        case "choice":
            return str(right)
        case _:
            return str([each["level"] for each in question["criteria"]].index(right))
