"""How the letter engine words a typed question; knows nothing of prompts or tokens.

docs/system-one.md tells it in words. Another wording is another prompt.
"""

from semif_bento.decisions import Decision, Option
from semif_bento.questions import TRUE, Answerable, Question

YES_TEXT, NO_TEXT = "The answer is yes.", "The answer is no."
QUESTION_TEXT = {
    "yes_no": "Which of the two descriptions does the evidence support?",
    "choice": "Which of the options does the evidence support?",
    "levels": "Which of the levels does the evidence support?",
}
"""What stands for instructions that are null or empty."""


def word(question: Question) -> Decision:
    """Return the decision that a question asks for; its options are in the question's order."""
    options = tuple(_option(question, each) for each in question.options)
    text = question.instructions or QUESTION_TEXT[question.kind]
    return Decision(question.id, text, options, question.kind)


def _option(question: Question, given: Answerable) -> Option:
    match question.kind:
        case "yes_no":
            text = given.description or (YES_TEXT if given.id == TRUE else NO_TEXT)
        case "choice":
            text = f"{given.label}: {given.description}" if given.description else given.label
        case "levels":
            text = given.description
    return Option(given.id, text, given.label)
