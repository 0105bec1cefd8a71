"""What the likelihood engine has the model read, and how its scores are made; knows no tokens.

    {state}\\nQuestion: {question}\\nAnswer: {option}       a prompt, of which the option is scored
    Question: {question}\\nAnswer: {option}                its prior, the same without a state

A text is put together from three parts: `state_text` or PRIOR_TEXT, `question_text`, and one
`option_text`. Every change here is a new LIKELIHOOD_VERSION: tables of calibration belong to one.
"""

import hashlib
import json

from semif_bento.decisions import Decision, JsonState, Option
from semif_bento.questions import TRUE, Answerable, Question

LIKELIHOOD_VERSION = "likelihood-v1"
LIKELIHOOD_READOUT = (
    "log-probability of each option's text after the state and the question, less the same after "
    "the question alone"
)
LIKELIHOOD_PROBABILITY_STATUS = "relative likelihood score; uncalibrated as decision confidence"

STATE_EDGE = "Question:"
"""How every state's part and the prior's end; a question's part follows it."""
ANSWER_EDGE = "Answer:"
"""How every question's part ends; an option's part follows it."""
PRIOR_TEXT = STATE_EDGE
PRIOR_WEIGHT = 1.0
LENGTH_EXPONENT = 0.5
"""Scores are divided by the option's tokens to this power: 0 leaves sums, 1 makes them means."""
TEMPERATURE = 1.0
MOST_OPTIONS = 255
QUESTION_TEXT = {
    "yes_no": "Is it true?",
    "choice": "Which of these is it?",
    "levels": "Which of these levels is it?",
}
"""What stands for instructions that are null or empty."""
YES_TEXT, NO_TEXT = "Yes, this is true.", "No, this is not true."


def state_text(state: JsonState) -> str:
    """Return the part of a prompt that all decisions about a state share."""
    text = state if isinstance(state, str) else json.dumps(state, ensure_ascii=False)
    return f"{text}\n{STATE_EDGE}"


def question_text(decision: Decision) -> str:
    """Return a decision's own part up to the options, the same in prompt and prior."""
    return f" {decision.question}\n{ANSWER_EDGE}"


def option_text(option: Option) -> str:
    """Return what is scored for an option, with the space before it; "" where it says nothing.

    An option that has a label goes by it, and by what is said of it where anything is.
    """
    text = ": ".join(filter(None, (option.label, option.description)))
    return f" {text}" if text else ""


def word(question: Question) -> Decision:
    """Return the decision that a typed question asks for; its options are in its order.

    Yes and no go by what is said of them, and so does a level: its number carries nothing.
    """
    options = tuple(_option(question, one) for one in question.options)
    text = question.instructions or QUESTION_TEXT[question.kind]
    return Decision(question.id, text, options, question.kind)


def _option(question: Question, given: Answerable) -> Option:
    match question.kind:
        case "yes_no":
            return Option(given.id, given.description or _yes_or_no(given))
        case "choice":
            return Option(given.id, given.description, given.label)
        case "levels":
            return Option(given.id, given.description or given.label)


def _yes_or_no(given: Answerable) -> str:
    return YES_TEXT if given.id == TRUE else NO_TEXT


def option_logit(log_likelihood: float, log_prior: float, tokens: int) -> float:
    """Return an option's score over the temperature: softmax over the options needs no more.

    Args:
        log_likelihood: log P(option | state, question) in nats, summed over its tokens.
        log_prior: log P(option | question) likewise.
        tokens: the option's, at least 1.
    """
    score = log_likelihood - PRIOR_WEIGHT * log_prior
    return score / tokens**LENGTH_EXPONENT / TEMPERATURE


class ScoredHash:
    """SHA-256 over exactly what is scored, for decisions about one state.

    It is taken over a JSON array in UTF-8: the version, the state's part, the prior's part, the
    question's part, and the options' texts, each once and sorted, as their order means nothing.

    Args:
        context: the state's part.
    """

    def __init__(self, context: str) -> None:
        begun = ", ".join(_json(part) for part in (LIKELIHOOD_VERSION, context, PRIOR_TEXT))
        self._begun = hashlib.sha256(f"[{begun}, ".encode())  # a state may be long: read once

    def of(self, decision: Decision) -> str:
        """Return a decision's hash in hexadecimal."""
        options = sorted({option_text(option) for option in decision.options})
        found = self._begun.copy()
        found.update(f"{_json(question_text(decision))}, {_json(options)}]".encode())
        return found.hexdigest()


def _json(part: object) -> str:
    return json.dumps(part, ensure_ascii=False)
