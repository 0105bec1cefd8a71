"""Synthetic states and decisions of a wanted size; knows nothing of models or timing."""

import random
from collections.abc import Callable

from semif_bento.decisions import Decision, Option, ScoreRequest

SENTENCE = (
    "Order {order} left depot {depot} on Monday and was scanned again on Tuesday. Nobody opened "
    "when the driver rang. A purchase can be returned within {days} days. "
)
QUESTIONS = (
    "May the customer return the purchase?",
    "Has the parcel reached the customer?",
    "Assess the claim: the parcel was scanned twice before the first attempt to deliver it.",
    "Which team should take the case, given the policy and what has been tried so far?",
    "Is the customer angry?",
    "Does the evidence state how long a purchase can be returned, and has that time passed?",
)
OPTIONS = (
    ("Yes", "No"),
    ("The evidence establishes the claim", "It establishes neither", "It establishes the opposite"),
    ("Billing", "Logistics", "Customer care", "Legal"),
    ("The stated rule permits the action", "The stated rule prohibits the action"),
)


def make_request(
    state_tokens: int, decisions: int, count_tokens: Callable[[str], int], seed: int = 0
) -> ScoreRequest:
    """Return a request of `decisions` questions over a text state of about `state_tokens` tokens.

    Args:
        state_tokens: upper bound of the state's own tokens; at least one sentence is kept.
        decisions: 1 or more; they differ in length and number of options.
        count_tokens: tells the tokens of a text.
        seed: the same arguments and seed give the same request.
    """
    source = random.Random(seed)
    return ScoreRequest(
        state=_state(state_tokens, count_tokens, source),
        decisions=tuple(_decision(index, source) for index in range(decisions)),
    )


def as_rows(request: ScoreRequest) -> list[dict[str, object]]:
    """Return the request as SemIf's rows, for the reference scorers."""
    return [
        {
            "id": decision.id,
            "state": request.state,
            "question": decision.question,
            "options": [{"id": o.id, "description": o.description} for o in decision.options],
        }
        for decision in request.decisions
    ]


def _state(limit: int, count_tokens: Callable[[str], int], source: random.Random) -> str:
    def sentence() -> str:
        return SENTENCE.format(
            order=source.randint(1, 999), depot=source.randint(1, 99), days=source.randint(5, 60)
        )

    text = sentence()
    each = count_tokens(text)
    text += "".join(sentence() for _ in range(max(0, limit // each - 1)))
    while count_tokens(text) + each < limit:
        text += sentence()
    return text


def _decision(index: int, source: random.Random) -> Decision:
    marker = f"({index}) " if source.random() < 0.5 else ""
    texts = source.choice(OPTIONS)
    options = tuple(Option(f"o{place}", text) for place, text in enumerate(texts))
    return Decision(f"d{index}", marker + source.choice(QUESTIONS), options)
