"""How a System One question becomes a decision; knows nothing of HTTP, tokens or scores.

The mapping has a version, which every answer's headers name: another wording is another prompt.
docs/system-one.md tells it in words.
"""

import json

from semif_bento.api.systemone.schema import (
    MAX_CHOICES,
    MAX_LEVELS,
    Choice,
    Noul,
    Question,
    Score,
    Text,
)
from semif_bento.decisions import Decision, Option
from semif_bento.entailment import Claim
from semif_bento.errors import UsageError

MAPPING_VERSION = "systemone-questions-v1"

TRUE, FALSE = "true", "false"
YES_TEXT, NO_TEXT = "The answer is yes.", "The answer is no."
QUESTION_TEXT = {
    "noul": "Which of the two descriptions does the evidence support?",
    "choice": "Which of the options does the evidence support?",
    "score": "Which of the levels does the evidence support?",
}
"""What stands for instructions that are null or empty."""


def to_decision(question_id: str, question: Question, max_choices: int) -> Decision:
    """Return the decision that a question asks for; its options are in the question's order.

    Args:
        question_id: names the decision; it never reaches the model.
        question: as it was sent.
        max_choices: most options of a choice that the model has slots for.

    Raises:
        UsageError: an empty id, a noul that says nothing, no choice, too many choices or levels.
    """
    if not question_id:
        raise UsageError("Question key cannot be empty.", is_bare=True)
    options = _options(question, max_choices)
    text = to_text(question.instructions) or QUESTION_TEXT[question.type]
    return Decision(question_id, text, options)


def to_claims(question: Question, decision: Decision) -> tuple[Claim, ...]:
    """Return the options of a question as an NLI model reads them, in the decision's order.

    Labels are no and yes, the names of the choices, or the numbers of the levels. An option that
    nothing is said of is described by its label.
    """
    return tuple(
        Claim(option.id, label, text or label)
        for option, (label, text) in zip(decision.options, _labels(question), strict=True)
    )


def _labels(question: Question) -> list[tuple[str, str]]:
    match question:
        case Noul(criteria=criteria):
            true, false = (criteria.true, criteria.false) if criteria else (None, None)
            return [("yes", to_text(true)), ("no", to_text(false))]
        case Choice(criteria=choices):
            return [(name, to_text(text)) for name, text in choices.items()]
        case Score(criteria=levels):
            return [(str(level), to_text(text)) for level, text in enumerate(levels)]


def to_text(value: Text | None) -> str:
    """Return free text as the model reads it: strings as they are, the rest as JSON, null as ""."""
    if not value:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _options(question: Question, max_choices: int) -> tuple[Option, ...]:
    match question:
        case Noul():
            return _noul_options(question)
        case Choice():
            return _choice_options(question, max_choices)
        case Score():
            return _score_options(question)


def _noul_options(question: Noul) -> tuple[Option, ...]:
    criteria = question.criteria
    true, false = (criteria.true, criteria.false) if criteria else (None, None)
    if question.instructions is None and true is None and false is None:
        raise UsageError("Noul question must have criteria or instructions.", is_bare=True)
    return (Option(TRUE, to_text(true) or YES_TEXT), Option(FALSE, to_text(false) or NO_TEXT))


def _choice_options(question: Choice, max_choices: int) -> tuple[Option, ...]:
    criteria, most = question.criteria, min(max_choices, MAX_CHOICES)
    if not criteria:
        raise UsageError("Choice question must have at least one choice.", is_bare=True)
    if len(criteria) > most:
        raise UsageError(f"Too many choices. Must have at most {most} choices.", is_bare=True)
    return tuple(Option(name, _described(name, to_text(text))) for name, text in criteria.items())


def _described(name: str, description: str) -> str:
    return f"{name}: {description}" if description else name


def _score_options(question: Score) -> tuple[Option, ...]:
    if len(question.criteria) > MAX_LEVELS:
        raise UsageError(
            f"Too many score levels. Must have at most {MAX_LEVELS} levels.", is_bare=True
        )
    return tuple(Option(str(i), to_text(level)) for i, level in enumerate(question.criteria))
