"""The tools of `semif-bento mcp`: their arguments, their answers, what each asks the service.

Knows nothing of HTTP.
"""

from collections.abc import Awaitable
from typing import Annotated, Any, Literal, Protocol

from pydantic import BaseModel, Field

from semif_bento import __version__
from semif_bento.api.decisions.results import DecisionsResponse
from semif_bento.errors import EvidenceError

ABOUT = (
    "Typed decisions over a text, each with its probabilities, by a model that writes nothing. Ask "
    "what the text itself can settle; a probability near an even split, or a low confidence, means "
    "that it does not."
)

Text = Annotated[str, Field(description="What the question is about.")]
Asked = Annotated[str, Field(min_length=1, description="The question, in plain words.")]


class Named(BaseModel):
    """A choice or a level: its name, and what it means where that is not plain."""

    name: Annotated[str, Field(min_length=1)]
    description: str = ""


class Question(BaseModel):
    """One of several questions about one text."""

    type: Literal["yes_no", "choice", "score"]
    instructions: Asked
    name: str | None = Field(default=None, description="Comes back with the answer.")
    options: list[Named] = Field(
        default=[], description="The choices, 2 to 255, or the levels from the lowest, 2 to 10."
    )


class YesNo(BaseModel):
    """Whether it is so: the likelier answer, and the probability of yes."""

    answer: bool
    probability: float
    model: str


class Chosen(BaseModel):
    """The likeliest choice; confidence is 0 where all are alike and 1 where one is certain."""

    choice: str
    confidence: float
    probabilities: dict[str, float]
    model: str


class Scored(BaseModel):
    """The mean level, counted from 0, and the likeliest one's name."""

    score: float
    likeliest: str
    confidence: float
    probabilities: list[float]
    model: str


class Status(BaseModel):
    """What the service is: whether it answers, its version, and its models by all their names."""

    status: str
    version: str
    device: str
    models: list[str]


class Refused(Exception):
    """The service did not answer; the message is for the model that called a tool."""


class Service(Protocol):
    """What the tools ask of a service. Both raise Refused."""

    def decide(self, text: str, questions: list[dict[str, Any]]) -> Awaitable[DecisionsResponse]:
        """Ask questions, in the words of POST /v1/decisions, about a text."""
        ...

    def status(self) -> Awaitable[Status]:
        """Ask what is served."""
        ...


def to_wire(question: Question) -> dict[str, Any]:
    """Return a question in the words of POST /v1/decisions."""
    asked: dict[str, Any] = {"instructions": question.instructions}
    if question.name is not None:
        asked["name"] = question.name
    match question.type:
        case "yes_no":
            return {"type": "predicate", **asked}
        case "choice":
            choices = [{"value": o.name, "description": o.description} for o in question.options]
            return {"type": "choice", **asked, "choices": choices}
        case "score":
            levels = [{"label": o.name, "description": o.description} for o in question.options]
            return {"type": "score", **asked, "levels": levels}


def build(service: Service) -> Any:
    """Return the MCP server over a service.

    Raises:
        EvidenceError: the package `mcp` is not installed.
    """
    try:
        from mcp.server.mcpserver import MCPServer  # pyright: ignore[reportMissingImports]
        from mcp.server.mcpserver.exceptions import (  # pyright: ignore[reportMissingImports]
            ToolError,
        )
        from mcp.types import ToolAnnotations  # pyright: ignore[reportMissingImports]
    except ModuleNotFoundError:
        raise EvidenceError("mcp is not installed; the dependency group `mcp` holds it.") from None
    server = MCPServer("semif-bento", instructions=ABOUT, version=__version__, log_level="WARNING")
    tool = server.tool(
        annotations=ToolAnnotations(
            read_only_hint=True, idempotent_hint=True, destructive_hint=False, open_world_hint=False
        )
    )

    async def ask(text: str, questions: list[Question]) -> DecisionsResponse:
        try:
            return await service.decide(text, [to_wire(question) for question in questions])
        except Refused as error:
            raise ToolError(str(error)) from None

    @tool
    async def decide(text: Text, questions: list[Question]) -> DecisionsResponse:
        """Answer up to 400 questions about one text, which is read once; in their order."""
        return await ask(text, questions)

    @tool
    async def yes_no(text: Text, question: Asked) -> YesNo:
        """Tell whether something is so, by the text."""
        asked = await ask(text, [Question(type="yes_no", instructions=question)])
        probability = asked.answers[0].model_dump()["probability"]
        return YesNo(answer=probability >= 0.5, probability=probability, model=asked.model)

    @tool
    async def choose(text: Text, question: Asked, options: list[Named]) -> Chosen:
        """Choose the one of 2 to 255 options that the text supports best."""
        asked = await ask(text, [Question(type="choice", instructions=question, options=options)])
        answer = asked.answers[0].model_dump()
        return Chosen(
            choice=answer["choice"],
            confidence=answer["confidence"],
            probabilities={row["value"]: row["probability"] for row in answer["probabilities"]},
            model=asked.model,
        )

    @tool
    async def score(text: Text, question: Asked, levels: list[Named]) -> Scored:
        """Rate the text on a scale of 2 to 10 levels, the lowest first."""
        asked = await ask(text, [Question(type="score", instructions=question, options=levels)])
        answer = asked.answers[0].model_dump()
        likeliest = max(answer["probabilities"], key=lambda row: row["probability"])
        return Scored(
            score=answer["score"],
            likeliest=likeliest["label"],
            confidence=answer["confidence"],
            probabilities=[row["probability"] for row in answer["probabilities"]],
            model=asked.model,
        )

    @tool
    async def status() -> Status:
        """Tell what the service is and which models it serves."""
        try:
            return await service.status()
        except Refused as error:
            raise ToolError(str(error)) from None

    return server
