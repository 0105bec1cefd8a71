"""The request body of OpenAI's Decisions as pydantic models, as its SDK's types describe it.

Knows nothing of HTTP, wording, or what a model can do. No unknown key, no coercion, and null only
where the SDK has it.
"""

from typing import Annotated, Literal

from pydantic import Field, Tag

from semif_bento.api.decisions.input_schema import AnyItem
from semif_bento.api.decisions.unions import (
    TEXT_OR_BOOL,
    TEXT_OR_LIST,
    TYPED,
    JsonData,
    Said,
    Some,
    Text,
)
from semif_bento.api.schema import Wire

MAX_QUESTIONS = 400
MIN_CHOICES, MAX_CHOICES = 2, 255
MIN_LEVELS, MAX_LEVELS = 2, 10


class QuestionText(Wire):
    """A piece of a question's text."""

    type: Literal["input_text"]
    text: str


class QuestionJson(Wire):
    """A piece of a question as JSON."""

    type: Literal["input_json"]
    data: JsonData


_QuestionPart = Annotated[
    Annotated[QuestionText, Tag("~input_text")] | Annotated[QuestionJson, Tag("~input_json")],
    TYPED,
]
Instructions = Annotated[
    Annotated[Said, Tag("~text")] | Annotated[Some[_QuestionPart], Tag("~list")], TEXT_OR_LIST
]


class _Question(Wire):
    """A question about the input; its name comes back with its answer."""

    instructions: Instructions
    name: str = ""

    @property
    def given_name(self) -> str | None:
        """The name as it was sent, None where none was; an empty one is a name."""
        return self.name if "name" in self.model_fields_set else None


class Predicate(_Question):
    """How likely is it that a statement is true?"""

    type: Literal["predicate"]


class ChoiceOption(Wire):
    """An option. Its value is typed: the string "true" and the boolean are two."""

    value: Annotated[
        Annotated[Said, Tag("~text")] | Annotated[bool, Tag("~bool")],
        TEXT_OR_BOOL,
    ]
    description: str = ""


class Choice(_Question):
    """Which of the options is it? Their values differ."""

    type: Literal["choice"]
    choices: Annotated[
        list[ChoiceOption], Field(min_length=MIN_CHOICES, max_length=MAX_CHOICES, fail_fast=True)
    ]


class ScoreLevel(Wire):
    """A step of a scale."""

    label: Said
    description: str = ""


class Score(_Question):
    """Where on the scale is it? The lowest level comes first."""

    type: Literal["score"]
    levels: Annotated[
        list[ScoreLevel], Field(min_length=MIN_LEVELS, max_length=MAX_LEVELS, fail_fast=True)
    ]


Question = Predicate | Choice | Score

_AnyQuestion = Annotated[
    Annotated[Predicate, Tag("~predicate")]
    | Annotated[Choice, Tag("~choice")]
    | Annotated[Score, Tag("~score")],
    TYPED,
]


class CacheOptions(Wire):
    """How the caller would have the prompt cached. Without effect."""

    mode: Literal["implicit", "explicit"] | None = None
    ttl: Literal["30m"] = "30m"


class DecisionsRequest(Wire):
    """Body of POST /v1/decisions: an input, and the questions asked about it.

    An output of a tool has a call of the same kind and `call_id` before it.
    """

    model: str
    input: Annotated[Text | Annotated[Some[AnyItem], Tag("~list")], TEXT_OR_LIST]
    questions: Annotated[
        list[_AnyQuestion], Field(min_length=1, max_length=MAX_QUESTIONS, fail_fast=True)
    ]
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_options: CacheOptions | None = None
