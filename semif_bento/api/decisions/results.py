"""The response body of OpenAI's Decisions, its keys in the SDK's order, then ours.

Knows nothing of HTTP or of where the numbers come from. A number out of its range fails here, so
that no answer carries one.
"""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from semif_bento.api.schema import Wire

Share = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]


class _Answer(Wire):
    """What every answer has, and keys of ours: each begins with `x_`. The SDK keeps them."""

    model_config = ConfigDict(extra="allow")


class PredicateAnswer(_Answer):
    """The probability that the statement is true."""

    type: Literal["predicate"] = "predicate"
    name: str | None
    probability: Share


class ChoiceProbability(Wire):
    """The probability of an option, whose value is typed as it was sent."""

    value: str | bool
    probability: Share


class ChoiceAnswer(_Answer):
    """The likeliest option, the first of equals."""

    type: Literal["choice"] = "choice"
    name: str | None
    choice: str | bool
    confidence: Share
    probabilities: list[ChoiceProbability]


class LevelProbability(Wire):
    """The probability of a level, whose value is its position."""

    value: int
    label: str
    probability: Share


class ScoreAnswer(_Answer):
    """The mean level."""

    type: Literal["score"] = "score"
    name: str | None
    score: Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
    confidence: Share
    probabilities: list[LevelProbability]


class RefusalAnswer(_Answer):
    """No answer. A model that writes nothing declines nothing: this service sends none."""

    type: Literal["refusal"] = "refusal"
    name: str | None


Answer = Annotated[
    PredicateAnswer | ChoiceAnswer | ScoreAnswer | RefusalAnswer, Field(discriminator="type")
]


class InputTokensDetails(Wire):
    """How many tokens of the input the prefix cache knew; what it keeps costs nothing."""

    cached_tokens: int
    cache_write_tokens: int


class OutputTokensDetails(Wire):
    """None are written."""

    reasoning_tokens: int


class Usage(Wire):
    """Tokens read, the shared input counted once; none are written."""

    input_tokens: int
    input_tokens_details: InputTokensDetails
    output_tokens: int
    output_tokens_details: OutputTokensDetails
    total_tokens: int


class DecisionsResponse(Wire):
    """Answer of POST /v1/decisions, the answers in the order of the questions."""

    model: str
    answers: list[Answer]
    usage: Usage
