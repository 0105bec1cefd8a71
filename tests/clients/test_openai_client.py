"""OpenAI's own SDK against a real server: it works by changing its base URL, and nothing else."""

import asyncio
from collections.abc import Iterator
from functools import partial
from typing import Any

import openai
import pytest
from live import Server, together
from openai.types import Decision

QUESTIONS: list[Any] = [
    {"type": "predicate", "instructions": "Is the tea cold?"},
    {
        "type": "choice",
        "name": "tone",
        "instructions": [{"type": "input_text", "text": "What is the tone?"}],
        "choices": [{"value": "calm", "description": "quiet"}, {"value": "true"}, {"value": True}],
    },
    {
        "type": "score",
        "name": "grade",
        "instructions": "How good?",
        "levels": [{"label": "bad"}, {"label": "fair"}, {"label": "good", "description": "hot"}],
    },
]
ITEMS: list[Any] = [
    {"role": "system", "content": "Be kind."},
    {"role": "developer", "content": [{"type": "input_text", "text": "Be short."}]},
    {
        "role": "user",
        "type": "message",
        "content": [
            {
                "type": "input_text",
                "text": "Tea?",
                "prompt_cache_breakpoint": {"mode": "explicit"},
            },
            {"type": "input_json", "data": {"cup": 1}},
        ],
    },
    {
        "role": "assistant",
        "phase": "final_answer",
        "content": [
            {"type": "output_text", "text": "Yes."},
            {"type": "refusal", "refusal": "No more."},
        ],
    },
    {"type": "function_call", "call_id": "a", "name": "pour", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "a", "output": "poured"},
    {"type": "custom_tool_call", "call_id": "b", "name": "sing", "input": "la"},
    {
        "type": "custom_tool_call_output",
        "call_id": "b",
        "output": [{"type": "input_text", "text": "la"}],
    },
]


def doing(**what: Any) -> list[Any]:
    return [{"role": "user", "content": [{"type": "input_json", "data": what}]}]


def open_client(served: Server, key: str, **options: Any) -> openai.OpenAI:
    return openai.OpenAI(**{"api_key": key, "base_url": f"{served.url}/v1", **options})


@pytest.fixture
def client(served, key) -> Iterator[openai.OpenAI]:
    with open_client(served, key, max_retries=0, _strict_response_validation=True) as made:
        yield made


def ask(client: openai.OpenAI, **changes: Any) -> Decision:
    asked = {"model": "gpt-6-luna", "input": "The tea was cold.", "questions": QUESTIONS}
    return client.decisions.create(**{**asked, **changes})


def check(decision: Decision) -> None:
    assert decision.model == "scripted@r1"
    predicate, choice, score = decision.answers
    assert predicate.type == "predicate"
    assert predicate.name is None
    assert 0 < predicate.probability < 1
    assert choice.type == "choice"
    assert choice.name == "tone"
    assert choice.choice is True  # the last of three is the scripted scorer's likeliest
    assert [row.value for row in choice.probabilities] == ["calm", "true", True]
    assert sum(row.probability for row in choice.probabilities) == pytest.approx(1)
    assert score.type == "score"
    assert [(row.value, row.label) for row in score.probabilities] == [
        (0, "bad"),
        (1, "fair"),
        (2, "good"),
    ]
    assert score.score == pytest.approx(sum(r.value * r.probability for r in score.probabilities))
    assert decision.usage.total_tokens == decision.usage.input_tokens
    assert decision.usage.input_tokens_details.cached_tokens in (0, 5)
    assert decision._request_id


@pytest.mark.parametrize("given", ["The tea was cold.", "", ITEMS])
def test_the_sync_client_gets_every_kind_of_answer(client, given):
    check(ask(client, input=given))


def test_the_async_client_gets_every_kind_of_answer(served, key):
    async def create() -> tuple[Decision, list[str]]:
        async with openai.AsyncOpenAI(api_key=key, base_url=f"{served.url}/v1") as client:
            decision = await client.decisions.create(
                model="scripted@r1", input=ITEMS, questions=QUESTIONS
            )
            return decision, [model.id async for model in client.models.list()]

    decision, models = asyncio.run(create())
    check(decision)
    assert models[0] == "scripted@r1"


def test_the_raw_response_has_our_headers(client):
    raw = client.decisions.with_raw_response.create(
        model="gpt-6-luna", input="x", questions=QUESTIONS
    )
    check(raw.parse())
    assert raw.headers["x-semif-items"] == "decisions-items-v1"
    assert raw.headers["x-request-id"] == raw.request_id


def test_keys_of_ours_are_kept_by_the_client(client):
    answer = ask(client, extra_headers={"X-Semif-Diagnostics": "true"}).answers[0]
    assert {"x_margin", "x_letter_mass"} <= set(answer.model_extra or {})


def test_what_has_no_effect_is_taken(client):
    check(
        ask(
            client,
            safety_identifier="who",
            prompt_cache_key="key",
            prompt_cache_options={"mode": "explicit", "ttl": "30m"},
        )
    )


def test_400_questions_in_one_call(client):
    questions = [{"type": "predicate", "instructions": f"Is {n} even?"} for n in range(400)]
    assert len(ask(client, questions=questions).answers) == 400


def choice(*values: Any) -> list[Any]:
    return [{**QUESTIONS[1], "choices": [{"value": value} for value in values]}]


IMAGE = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}


@pytest.mark.parametrize(
    ("changes", "error", "param", "code"),
    [
        ({"model": "gpt-4"}, openai.NotFoundError, "model", "model_not_found"),
        ({"questions": []}, openai.BadRequestError, "questions", "empty_array"),
        (
            {"questions": choice("a")},
            openai.BadRequestError,
            "questions[0].choices",
            "array_below_min_length",
        ),
        (
            {"questions": choice(True, True)},
            openai.BadRequestError,
            "questions[0].choices",
            "invalid_value",
        ),
        ({"input": ITEMS[5:]}, openai.BadRequestError, "input[0].call_id", "invalid_value"),
        (
            {"input": [{"role": "user", "content": [IMAGE]}]},
            openai.BadRequestError,
            "input[0].content[0]",
            "unsupported_content_type",
        ),
        ({"extra_body": {"top_k": 1}}, openai.BadRequestError, None, "unknown_parameter"),
        (
            {"input": doing(**{"raise": "too long"})},
            openai.BadRequestError,
            "input",
            "context_length_exceeded",
        ),
        (
            {"input": doing(**{"raise": "not finite"})},
            openai.InternalServerError,
            None,
            "scoring_failed",
        ),
        (
            {"input": doing(**{"raise": "out of memory"})},
            openai.InternalServerError,
            None,
            "out_of_memory",
        ),
        ({"input": doing(sleep=3.5)}, openai.InternalServerError, None, "timeout"),
        ({"input": "x" * (2 << 20)}, openai.APIStatusError, None, "request_too_large"),
    ],
)
def test_every_refusal_is_the_clients_own_error(client, changes, error, param, code):
    with pytest.raises(error) as caught:
        ask(client, **changes)
    assert (caught.value.param, caught.value.code) == (param, code)
    assert caught.value.request_id


@pytest.mark.parametrize("call", [lambda client: client.models.list(), ask])
def test_a_wrong_key_is_an_authentication_error(served, key, call):
    with (
        open_client(served, "wrong", max_retries=0) as client,
        pytest.raises(openai.AuthenticationError),
    ):
        call(client)


def test_the_models_are_listed_and_found_by_name(client):
    names = [model.id for model in client.models.list()]
    assert names[0] == "scripted@r1"
    assert "org/model@r1" in names
    for name in names:
        assert client.models.retrieve(name).id == name
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("a/b")


def test_a_client_that_is_turned_away_comes_again_and_is_answered(served, key):
    def create(client: openai.OpenAI) -> Decision | openai.RateLimitError:
        try:
            return ask(client, input=doing(sleep=0.8))
        except openai.RateLimitError as error:
            return error

    with (
        open_client(served, key, max_retries=0) as hasty,
        open_client(served, key, max_retries=3) as patient,
    ):
        hasty.models.list(), patient.models.list()  # so that their connections are open
        calls = [hasty, hasty, hasty, patient]
        *_, refused, answered = together(*(partial(create, one) for one in calls), gap_s=0.1)
    assert isinstance(refused, openai.RateLimitError)
    assert refused.code == "overloaded"
    assert 1 <= int(refused.response.headers["retry-after"]) <= 10
    assert isinstance(answered, Decision)
