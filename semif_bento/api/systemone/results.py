"""The response bodies of System One, their keys in the service's order, then ours.

Knows nothing of HTTP or of where the numbers come from. A number out of its range fails here, so
that no answer carries one: clients do not check.
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from semif_bento.api.results import WHEN_ASKED
from semif_bento.api.schema import Wire

Share = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]


class CalibratedAnswer(Wire):
    """Probabilities at a workload's temperature; those beside it stay native."""

    workload: str
    temperature: float
    probabilities: dict[str, Share]


class Evidence(Wire):
    """What every answer tells beyond the service's own keys; existing clients pass over it.

    An answer without a model behind it (one option only) has `trivial` and nothing else of this.
    """

    margin: Share | None = WHEN_ASKED
    near_tie: bool | None = WHEN_ASKED
    prompt_sha256: str | None = WHEN_ASKED
    prompt_version: str | None = WHEN_ASKED
    engine: str | None = WHEN_ASKED
    letter_mass: Share | None = WHEN_ASKED
    support: Share | None = WHEN_ASKED
    pair_logits: dict[str, list[float]] | None = WHEN_ASKED
    calibrated: CalibratedAnswer | None = WHEN_ASKED
    trivial: Literal[True] | None = WHEN_ASKED


class _Noul(Wire):
    """Probability that the answer is yes."""

    type: Literal["noul"] = "noul"
    noul: Share


class _Choice(Wire):
    """The likeliest option."""

    type: Literal["choice"] = "choice"
    choice: str
    confidence: Share
    probabilities: dict[str, Share]


class _Score(Wire):
    """The mean level."""

    type: Literal["score"] = "score"
    score: Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
    confidence: Share
    legend: dict[str, Any]
    probabilities: dict[str, Share]


# The last base's keys come first.
class NoulAnswer(Evidence, _Noul):
    """Answer to a noul question."""


class ChoiceAnswer(Evidence, _Choice):
    """Answer to a choice question."""


class ScoreAnswer(Evidence, _Score):
    """Answer to a score question."""


Answer = Annotated[NoulAnswer | ChoiceAnswer | ScoreAnswer, Field(discriminator="type")]


class Usage(Wire):
    """Tokens read, the shared state counted once; none are written."""

    input_tokens: int
    output_tokens: int


class SystemOneResponse(Wire):
    """Answer of POST /v1/systemone, the answers in the order of the questions."""

    model: str
    answers: dict[str, Answer]
    usage: Usage
