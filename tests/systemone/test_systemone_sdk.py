"""TypeSafe's own SDK against a real server: it works by changing its base URL, and nothing else."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest
import typesafe_sdk as sdk
from live import TOKEN, wait_until
from typesafe_sdk._core import compression

QUESTIONS = {
    "cold": sdk.Noul(instructions="Is the tea cold?"),
    "tone": sdk.Choice(instructions="What is the tone?", criteria={"calm": None, "angry": "rude"}),
    "grade": sdk.Score(instructions="How good?", criteria=["bad", {"label": "fair"}, ["good"]]),
    "only": sdk.Choice(criteria={"one": None}),
}
LONG = {"text": "The tea was cold. " * 200}


def open_client(server, **options) -> sdk.TypeSafeClient:
    return sdk.TypeSafeClient(
        **{"api_key": TOKEN, "base_url": server.url, "model": "jev-latest", **options}
    )


@pytest.fixture
def client(systemone_server) -> Iterator[sdk.TypeSafeClient]:
    with open_client(systemone_server, retry=sdk.RetryPolicy(max_retries=0)) as made:
        yield made


def check(response: sdk.SystemOneResponse) -> None:
    assert response.model == "scripted@r1"
    assert list(response.answers) == list(QUESTIONS)
    assert 0 < response.nouls["cold"].noul < 1
    assert response.choices["tone"].choice == "angry"
    assert set(response.choices["tone"].probabilities) == {"calm", "angry"}
    assert response.choices["only"].confidence == 1.0
    grade = response.scores["grade"]
    assert grade.legend == {0: "bad", 1: {"label": "fair"}, 2: ["good"]}
    assert set(grade.probabilities) == {0, 1, 2}
    assert 0 <= grade.score <= 2
    assert response.usage.input_tokens == 9
    assert response.request_id.startswith("req_")


@pytest.mark.parametrize("state", ["The tea was cold.", LONG, ["a", LONG]])
@pytest.mark.parametrize("how", ["zstd", False])
def test_the_sync_client_gets_every_kind_of_answer(systemone_server, state, how):
    with open_client(systemone_server, compression=how) as client:
        check(client.system_one(state=state, questions=QUESTIONS))


def test_the_async_client_gets_every_kind_of_answer(systemone_server):
    async def ask() -> tuple[sdk.SystemOneResponse, sdk.ListModelsResponse]:
        async with sdk.AsyncTypeSafeClient(
            api_key=TOKEN, base_url=systemone_server.url, model="scripted"
        ) as client:
            return await client.system_one(
                state=LONG, questions=QUESTIONS
            ), await client.models.list()

    response, models = asyncio.run(ask())
    check(response)
    assert models.models[0].name == "scripted@r1"


def test_a_client_without_the_zstd_extra_works_too(systemone_server, monkeypatch):
    monkeypatch.setattr(compression, "COMPRESSORS", {})
    with open_client(systemone_server) as client:
        check(client.system_one(state=LONG, questions=QUESTIONS))


def test_the_models_are_listed(client):
    names = [model.name for model in client.models.list().models]
    assert names == ["scripted@r1", "scripted", "jev-latest", "jev-1.13.0"]


def noul(instructions="Is it cold?"):
    return {"q": sdk.Noul(instructions=instructions)}


@pytest.mark.parametrize(
    ("asked", "error", "message"),
    [
        (
            {"model": "gpt-4"},
            sdk.TypeSafeBadRequestError,
            "Unknown model; there is: scripted@r1, scripted, jev-latest, jev-1.13.0.",
        ),
        (
            {"state": {"raise": "too long"}},
            sdk.TypeSafeBadRequestError,
            "Decision 0 makes a prompt of 5000 tokens; the limit is 4096.",
        ),
        (
            {"questions": {"q": sdk.Choice(criteria=dict.fromkeys(map(str, range(256))))}},
            sdk.TypeSafeBadRequestError,
            "Too many choices. Must have at most 255 choices.",
        ),
        (
            {"questions": {"q": sdk.Score(criteria=["x"] * 11)}},
            sdk.TypeSafeBadRequestError,
            "Too many score levels. Must have at most 10 levels.",
        ),
        (
            {"questions": {"q": {"type": "rank"}}},
            sdk.TypeSafeBadRequestError,
            "Invalid request.",
        ),
        (
            {"state": 5},
            sdk.TypeSafeUnprocessableEntityError,
            "state.str: Input should be a valid string",
        ),
        (
            {"state": {"raise": "not finite"}},
            sdk.TypeSafeInternalServerError,
            "A logit is not finite.",
        ),
        (
            {"state": {"raise": "out of memory"}},
            sdk.TypeSafeInternalServerError,
            "The device ran out of memory.",
        ),
        ({"state": "x" * 70000}, sdk.TypeSafeAPIError, "The body is over 65536 bytes"),
    ],
)
def test_every_refusal_is_the_clients_own_error_with_our_message(client, asked, error, message):
    with pytest.raises(error) as caught:
        client.system_one(**{"state": "s", "questions": noul(), **asked})
    assert message in str(caught.value)
    assert caught.value.request_id.startswith("req_")


def test_a_wrong_key_and_none_are_different_errors(systemone_server):
    with (
        open_client(systemone_server, api_key="wrong") as client,
        pytest.raises(sdk.TypeSafeAuthenticationError),
    ):
        client.models.list()

    def drop_the_key(request) -> None:
        del request.headers["authorization"]

    keyless = httpx2.Client(event_hooks={"request": [drop_the_key]})
    with (
        open_client(systemone_server, http_client=keyless) as client,
        pytest.raises(sdk.TypeSafePermissionDeniedError),
    ):
        client.models.list()


def test_an_image_is_a_bad_request(client):
    image = sdk.Image(bytes.fromhex("89504e470d0a1a0a"))
    with pytest.raises(sdk.TypeSafeBadRequestError, match="Images are not supported"):
        client.system_one(state=f"Look: {image}", assets={"photo": image}, questions=noul())


def test_512_questions_in_one_call(client):
    questions = {f"q{n}": sdk.Noul(instructions=f"Is {n} even?") for n in range(512)}
    response = client.system_one(state="s", questions=questions)
    assert list(response.nouls) == list(questions)


def test_a_client_that_is_turned_away_comes_again_and_is_answered(systemone_server, jev, gate):
    def ask(retries: int) -> object:
        policy = sdk.RetryPolicy(max_retries=retries)
        with open_client(systemone_server, retry=policy) as client:
            return client.system_one(state="s", questions=noul())

    def turned_away() -> float:
        return jev.metric('semif_requests_total{code="overloaded",route="/v1/systemone"}')

    before = turned_away()
    with ThreadPoolExecutor() as pool:
        for _ in range(3):  # one runs, one waits, one is refused, and then there is no place
            pool.submit(jev.ask, state=gate.state)
        wait_until(lambda: turned_away() >= before + 1)
        with pytest.raises(sdk.TypeSafeRateLimitError) as caught:
            ask(0)
        patient = pool.submit(ask, 2)
        wait_until(lambda: turned_away() >= before + 3)
        gate.open()
        assert isinstance(patient.result(), sdk.SystemOneResponse)
    assert 1000 <= caught.value.retry_after_ms <= 10000


def test_a_client_tries_a_server_error_again(systemone_server, jev):
    before = jev.counts()["calls"]
    with (
        open_client(systemone_server, retry=sdk.RetryPolicy(max_retries=1)) as client,
        pytest.raises(sdk.TypeSafeInternalServerError),
    ):
        client.system_one(state={"raise": "not finite"}, questions=noul())
    assert jev.counts()["calls"] == before + 2
