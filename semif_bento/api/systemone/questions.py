"""What a System One question asks; knows nothing of HTTP, tokens or scores.

The mapping has a version, which every answer's headers name: another wording is another prompt.
docs/system-one.md tells it in words.
"""

import json

from semif_bento import questions as typed
from semif_bento.api.systemone.schema import (
    MAX_CHOICES,
    MAX_LEVELS,
    Choice,
    Noul,
    Question,
    Score,
    Text,
)
from semif_bento.errors import UsageError
from semif_bento.questions import FALSE, TRUE, Answerable

MAPPING_VERSION = "systemone-questions-v1"


def to_question(question_id: str, question: Question, max_choices: int) -> typed.Question:
    """Return what a question asks, in the words that no protocol owns.

    Args:
        question_id: names the question; it never reaches the model.
        question: as it was sent.
        max_choices: most options of a choice that the engine takes.

    Raises:
        UsageError: an empty id, a noul that says nothing, no choice, too many choices or levels.
    """
    if not question_id:
        raise UsageError("Question key cannot be empty.", is_bare=True)
    instructions = to_text(question.instructions)
    match question:
        case Noul():
            options = _noul_options(question)
            return typed.Question(question_id, "yes_no", instructions, options)
        case Choice():
            options = _choice_options(question, max_choices)
            return typed.Question(question_id, "choice", instructions, options)
        case Score():
            return typed.Question(question_id, "levels", instructions, _score_options(question))


def to_text(value: Text | None) -> str:
    """Return free text as the model reads it: strings as they are, the rest as JSON, null as ""."""
    if not value:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _noul_options(question: Noul) -> tuple[Answerable, ...]:
    criteria = question.criteria
    true, false = (criteria.true, criteria.false) if criteria else (None, None)
    if question.instructions is None and true is None and false is None:
        raise UsageError("Noul question must have criteria or instructions.", is_bare=True)
    return (
        Answerable(TRUE, "yes", to_text(true)),
        Answerable(FALSE, "no", to_text(false)),
    )


def _choice_options(question: Choice, max_choices: int) -> tuple[Answerable, ...]:
    criteria, most = question.criteria, min(max_choices, MAX_CHOICES)
    if not criteria:
        raise UsageError("Choice question must have at least one choice.", is_bare=True)
    if len(criteria) > most:
        raise UsageError(f"Too many choices. Must have at most {most} choices.", is_bare=True)
    return tuple(Answerable(name, name, to_text(text)) for name, text in criteria.items())


def _score_options(question: Score) -> tuple[Answerable, ...]:
    if len(question.criteria) > MAX_LEVELS:
        raise UsageError(
            f"Too many score levels. Must have at most {MAX_LEVELS} levels.", is_bare=True
        )
    return tuple(
        Answerable(str(i), str(i), to_text(level)) for i, level in enumerate(question.criteria)
    )
