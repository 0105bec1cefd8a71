"""Rows to score, with their right options: read from JSONL, every malformed line named.

Knows nothing of models, scoring or reports.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from semif_bento.api import strict_json, validation
from semif_bento.api.schema import DecideRequest, Name, OptionBody, State, Wire
from semif_bento.decisions import Decision, JsonState, Option, ScoreRequest
from semif_bento.engine.kind import EngineKind
from semif_bento.errors import EvidenceError, InvalidRequest
from semif_bento.protocol import MAX_WIDE_OPTIONS, MIN_OPTIONS
from semif_bento.questions import FALSE, TRUE, Answerable, Question

NOT_OF_A_ROW = ("workload", "diagnostics", "engine")
TYPED_KINDS = ("yes_no", "choice", "levels")
YES_NO_NAMES = {TRUE: "yes", FALSE: "no"}
ROWS_ON_CPU = 16
"""Without a GPU a row takes a second, and the untouched model several."""


@dataclass(frozen=True, slots=True)
class Row:
    """One decision over one state, as POST /decide takes it, or a typed question.

    A typed question is a decision of another kind than "options"; its options hold what was sent
    until `word` puts it into an engine's words.

    `answer` is the id of the right option, or None where nobody labelled it. Rows of one `group`
    say the same in other words, so they are never split between fitting and measuring; a row
    without a group is a group of its own. `tags` name slices of the data.
    """

    line: int
    state: JsonState
    decision: Decision
    answer: str | None
    group: str
    tags: dict[str, str] = field(default_factory=dict)

    @property
    def sha256(self) -> str:
        """Return the hash of what is asked: state, question and options in their order."""
        options = [
            [option.id, option.description, *([] if option.label is None else [option.label])]
            for option in self.decision.options
        ]
        kind = [] if self.decision.kind == "options" else [self.decision.kind]
        asked = json.dumps([self.state, self.decision.question, options, *kind])
        return hashlib.sha256(asked.encode()).hexdigest()

    @property
    def answer_index(self) -> int:
        """Return the right option's place.

        Raises:
            ValueError: the row is not labelled.
        """
        return [option.id for option in self.decision.options].index(str(self.answer))

    def request(self) -> ScoreRequest:
        """Return the row as the scorer takes it."""
        return ScoreRequest(self.state, (self.decision,))

    def word(self, kind: EngineKind) -> "Row":
        """Return the row with a typed question in an engine's words, as the protocols word it.

        A decision of a caller's own options stays as it is.
        """
        asked = self.decision
        if asked.kind == "options":
            return self
        options = tuple(Answerable(o.id, o.name, o.description) for o in asked.options)
        question = Question(asked.id, asked.kind, asked.question, options)
        return replace(self, decision=kind.word(question))


@dataclass(frozen=True, slots=True)
class RowFile:
    """What a file held: its rows, one sentence for each malformed line, the hash of its bytes."""

    rows: tuple[Row, ...]
    row_errors: tuple[str, ...]
    sha256: str

    def word(self, kind: EngineKind) -> "RowFile":
        """Return the file with every typed question in an engine's words."""
        return replace(self, rows=tuple(row.word(kind) for row in self.rows))


class TypedRow(Wire):
    """A row whose options are yes and no, categories, or levels from the lowest."""

    id: Name
    state: State
    question: str
    kind: Literal["yes_no", "choice", "levels"]
    options: Annotated[list[OptionBody], Field(min_length=MIN_OPTIONS, max_length=MAX_WIDE_OPTIONS)]


def read_rows(path: Path, *, labelled: bool) -> RowFile:
    """Read one row a line; blank lines say nothing.

    A line is a POST /decide body without `workload`, `diagnostics` and `engine`, and may have
    `answer` (an option's id), `group` (a nonempty string) and `tags` (an object of strings). With
    `kind` (yes_no, choice or levels) it is a typed question.

    Args:
        path: a JSONL file in UTF-8.
        labelled: whether a row without `answer` is malformed.

    Raises:
        EvidenceError: the file cannot be read, or holds no good row at all.
    """
    try:
        content = path.read_bytes()
    except OSError as exc:
        raise EvidenceError(f"{path} cannot be read: {exc.strerror}.") from exc
    rows: list[Row] = []
    faults: list[str] = []
    ids: set[str] = set()
    for number, line in _lines(content):
        try:
            row = _read_row(number, line, labelled)
            if row.decision.id in ids:
                raise InvalidRequest("`id` stands on an earlier line too.")
        except InvalidRequest as exc:
            faults.append(f"line {number}: {exc.message}")
            continue
        ids.add(row.decision.id)
        rows.append(row)
    if not rows:
        reason = f" ({faults[0]})" if faults else ""
        raise EvidenceError(f"{path} holds no row that can be scored{reason}.")
    return RowFile(tuple(rows), tuple(faults), hashlib.sha256(content).hexdigest())


def choose_rows(rows: Sequence[Row], wanted: int | None, device: str) -> Sequence[Row]:
    """Return a sample of rows, spread evenly over all, for what scores them once more.

    Args:
        rows: all rows.
        wanted: how many, 1 or more; None takes all on a GPU and `ROWS_ON_CPU` without one.
        device: of the model, as it names itself.
    """
    count = wanted or (ROWS_ON_CPU if device == "cpu" else len(rows))
    if count >= len(rows):
        return rows
    return [rows[place * len(rows) // count] for place in range(count)]


def bundled_rows() -> Path:
    """Return the path of the decisions that ship with the product, all labelled."""
    return Path(str(resources.files("semif_bento.evidence") / "data" / "decisions.jsonl"))


def typed_rows() -> Path:
    """Return the path of the typed questions that ship with the product, all labelled."""
    return Path(str(resources.files("semif_bento.evidence") / "data" / "questions.jsonl"))


def _lines(content: bytes) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(content.split(b"\n"), start=1):
        if line.strip():
            yield number, line


def _read_row(number: int, line: bytes, labelled: bool) -> Row:
    value = strict_json.parse(line)
    if not isinstance(value, dict):
        raise InvalidRequest("The row must be an object.")
    for key in NOT_OF_A_ROW:
        if key in value:
            raise InvalidRequest(f"`{key}` does not belong to a row.")
    answer, group, tags = (value.pop(key, None) for key in ("answer", "group", "tags"))
    kind = value.get("kind", "options")
    if kind not in ("options", *TYPED_KINDS):
        raise InvalidRequest(f"`kind` must be one of options, {', '.join(TYPED_KINDS)}.")
    if kind == "options":
        value.pop("kind", None)
        body = validation.check(DecideRequest, value)
        options = tuple(Option(each.id, each.description, each.label) for each in body.options)
        decision = Decision(body.id, body.question, options)
    else:
        body = validation.check(TypedRow, value)
        decision = _to_typed(body)
    _check_labels(answer, group, tags, labelled, {option.id for option in decision.options})
    return Row(number, body.state, decision, answer, group or f"line {number}", tags or {})


def _to_typed(row: TypedRow) -> Decision:
    ids = [option.id for option in row.options]
    if len(set(ids)) < len(ids):
        raise InvalidRequest("`options` must have ids that differ from each other.")
    if row.kind == "yes_no" and ids != [TRUE, FALSE]:
        raise InvalidRequest("`options` of a yes_no must have the ids true and false, in order.")
    if row.kind == "levels" and ids != [str(level) for level in range(len(ids))]:
        raise InvalidRequest("`options` of levels must have the ids 0, 1, and so on, in order.")
    names = YES_NO_NAMES if row.kind == "yes_no" else {}
    options = tuple(
        Option(each.id, each.description, each.label or names.get(each.id, each.id))
        for each in row.options
    )
    return Decision(row.id, row.question, options, row.kind)


def _check_labels(answer: Any, group: Any, tags: Any, labelled: bool, options: set[str]) -> None:
    if answer is None and labelled:
        raise InvalidRequest("`answer` is missing.")
    if answer is not None and (not isinstance(answer, str) or answer not in options):
        raise InvalidRequest("`answer` must be the id of one of the options.")
    if group is not None and (not isinstance(group, str) or not group):
        raise InvalidRequest("`group` must be a nonempty string.")
    if tags is not None and not (
        isinstance(tags, dict) and all(isinstance(value, str) for value in tags.values())
    ):
        raise InvalidRequest("`tags` must be an object of strings.")
