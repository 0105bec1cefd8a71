"""How a question of OpenAI's Decisions becomes one of ours; knows nothing of HTTP or engines.

The mapping has a version, which every answer's headers name: another wording is another prompt.
"""

import json

from semif_bento.api.decisions.schema import (
    Choice,
    ChoiceOption,
    Instructions,
    Predicate,
    Question,
    QuestionText,
    Score,
)
from semif_bento.questions import Answerable
from semif_bento.questions import Question as Asked

QUESTIONS_VERSION = "decisions-questions-v1"

YES_NO = (Answerable("true", "yes", ""), Answerable("false", "no", ""))


def to_question(position: int, question: Question) -> Asked:
    """Return what a question asks; its id is its position, since names need not differ.

    The ids of a choice's options are their positions too: the string "true" and the boolean are two
    options of one label.
    """
    text = to_text(question.instructions)
    match question:
        case Predicate():
            return Asked(str(position), "yes_no", text, YES_NO)
        case Choice(choices=choices):
            options = tuple(
                Answerable(str(index), to_label(option), option.description)
                for index, option in enumerate(choices)
            )
            return Asked(str(position), "choice", text, options)
        case Score(levels=levels):
            options = tuple(
                Answerable(str(index), str(index), _described(level.label, level.description))
                for index, level in enumerate(levels)
            )
            return Asked(str(position), "levels", text, options)


def to_label(option: ChoiceOption) -> str:
    """Return an option's value as a model reads it: a boolean is its JSON, a string is itself."""
    return option.value if isinstance(option.value, str) else json.dumps(option.value)


def to_text(instructions: Instructions) -> str:
    """Return instructions as a model reads them: a line for each part, JSON as its text."""
    if isinstance(instructions, str):
        return instructions
    return "\n".join(
        part.text if isinstance(part, QuestionText) else json.dumps(part.data, ensure_ascii=False)
        for part in instructions
    )


def _described(label: str, description: str) -> str:
    return f"{label}: {description}" if description else label
