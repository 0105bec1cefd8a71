"""LangChain's two clients of OpenAI's Decisions against a real server."""

import asyncio
from typing import Any

import openai
import pytest
from langchain_core import decisions as core
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_openai.decisions import (
    Choice,
    Level,
    OpenAIClassifier,
    OpenAIDecisions,
    Predicate,
    Score,
)

pytestmark = pytest.mark.filterwarnings("ignore")  # they are in beta, and say so

CALL = {"name": "pour", "args": {"cups": 1}, "id": "call_1"}
STATES = [
    "The tea was cold.",
    {"tea": {"degrees": 20, "cups": [1, 2]}},
    HumanMessage("The tea was cold."),
    [HumanMessage("Tea?"), HumanMessage([{"type": "text", "text": "Please."}])],
    [
        SystemMessage("Be kind."),
        HumanMessage("Tea?"),
        AIMessage("At once.", tool_calls=[CALL]),
        ToolMessage("poured", tool_call_id="call_1"),
        AIMessage("Here."),
    ],
]
QUESTIONS = {
    "cold": Predicate(instructions="Is it cold?"),
    "tone": Choice(instructions="Which?", choices={"calm": None, "angry": "rude"}),
    "flag": Choice(instructions="Is it?", choices={True: "so it is", False: None}),
    "grade": Score(
        instructions="How good?", levels=["bad", Level(label="good", description="hot")]
    ),
}


def options(served: Any, key: str) -> dict[str, Any]:
    return {
        "model": "gpt-6-luna",
        "api_key": key,
        "base_url": f"{served.url}/v1",
        "max_retries": 0,
    }


def check(response: Any) -> None:
    assert response.model == "scripted@r1"
    assert list(response.answers) == list(QUESTIONS)
    assert 0 < response.predicates["cold"].probability < 1
    assert response.choices["tone"].choice == "angry"
    assert response.choices["flag"].choice is False
    assert set(response.choices["flag"].probabilities) == {True, False}
    assert response.scores["grade"].legend == {0: "bad", 1: "good"}
    assert response.usage.input_tokens == 9
    assert response.request_id


@pytest.mark.parametrize("state", STATES)
def test_decisions_by_any_state(served, key, state):
    client = OpenAIDecisions(**options(served, key))
    asked = {"input": state, "questions": QUESTIONS}
    check(client.invoke(asked))
    check(asyncio.run(client.ainvoke(asked)))


@pytest.mark.parametrize("state", STATES)
def test_the_classifier_by_any_state(served, key, state):
    response = OpenAIClassifier(**options(served, key)).invoke(
        {
            "state": state,
            "questions": {
                "cold": core.Noul(
                    instructions="Is it cold?", criteria=core.NoulCriteria(true="below 40 degrees")
                ),
                "tone": core.Choice(
                    instructions={"ask": "Which?"}, criteria={"calm": None, "angry": {"is": "rude"}}
                ),
                "grade": core.Score(instructions="How good?", criteria=["bad", ["good"]]),
            },
        }
    )
    assert 0 < response.nouls["cold"].noul < 1
    assert response.choices["tone"].choice == "angry"
    assert response.scores["grade"].legend == {0: "bad", 1: ["good"]}


def test_a_refusal_is_openais_error(served, key):
    client = OpenAIDecisions(**options(served, key))
    with pytest.raises(openai.BadRequestError, match="choices"):
        client.invoke(
            {
                "input": "x",
                "questions": {"q": Choice(instructions="Which tone?", choices={"one": None})},
            }
        )
