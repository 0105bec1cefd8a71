"""`semif-bento mcp` over a real server, by the MCP package's own client."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from live import ROOT
from mcp import Client, StdioServerParameters

OPTIONS = [{"name": "calm"}, {"name": "angry", "description": "rude"}]


def with_tools(served: Any, key: str, use: Callable[[Client], Awaitable[Any]], *more: str) -> Any:
    command = ["-m", "semif_bento.cli.main", "mcp", "--url", served.url, *more]
    server = StdioServerParameters(
        command=sys.executable,
        args=command,
        env={"SEMIF_API_TOKEN": key, "PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
    )

    async def run() -> Any:
        async with Client(server) as client:
            return await use(client)

    return asyncio.run(run())


def call(served: Any, key: str, tool: str, *more: str, **arguments: Any) -> Any:
    return with_tools(served, key, lambda client: client.call_tool(tool, arguments), *more)


def test_every_tool_tells_the_shape_of_its_answer(served, key):
    tools = with_tools(served, key, lambda client: client.list_tools()).tools
    assert {tool.name for tool in tools} == {"decide", "yes_no", "choose", "score", "status"}
    assert all(tool.output_schema and tool.description for tool in tools)
    assert all(tool.annotations.read_only_hint for tool in tools)


@pytest.mark.parametrize(
    ("tool", "arguments", "keys"),
    [
        ("yes_no", {"question": "Is it cold?"}, {"answer", "probability"}),
        (
            "choose",
            {"question": "Which?", "options": OPTIONS},
            {"choice", "confidence", "probabilities"},
        ),
        (
            "score",
            {"question": "How?", "levels": OPTIONS},
            {"score", "likeliest", "confidence", "probabilities"},
        ),
    ],
)
def test_a_tool_answers_with_numbers(served, key, tool, arguments, keys):
    result = call(served, key, tool, text="The tea was cold.", **arguments)
    assert not result.is_error, result.content
    assert set(result.structured_content) == keys | {"model"}
    assert result.structured_content["model"] == "scripted@r1"


def test_many_questions_are_answered_in_order_by_the_model_asked_for(served, key):
    questions = [
        {"type": "score", "instructions": "How?", "options": OPTIONS, "name": "s"},
        {"type": "yes_no", "instructions": "Is it?"},
        {"type": "choice", "instructions": "Which?", "options": OPTIONS},
    ]
    result = call(
        served, key, "decide", "--model", "org/model@r1", text="The tea.", questions=questions
    )
    answers = result.structured_content["answers"]
    assert [one["type"] for one in answers] == ["score", "predicate", "choice"]
    assert [one["name"] for one in answers] == ["s", None, None]


def test_the_status_tells_what_is_served(served, key):
    told = call(served, key, "status").structured_content
    assert told["status"] == "ok"
    assert told["models"][0] == "scripted@r1"


def test_what_the_service_refuses_is_an_error_in_its_words(served, key):
    result = call(served, key, "choose", text="x", question="Which?", options=OPTIONS[:1])
    assert result.is_error
    assert "questions[0].choices" in result.content[0].text
    wrong = call(served, "wrong" * 8, "yes_no", text="x", question="Is it?")
    assert wrong.is_error
    assert "401" in wrong.content[0].text
    assert "wrong" not in wrong.content[0].text.replace("missing or wrong", "")
