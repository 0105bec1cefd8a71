"""A route whose engine is absent says how to enable it; /health says what is there."""

from collections.abc import Iterator

import pytest
from live import ROW, SHARED, Client, Server, error_of
from nli_bodies import PAIR
from nli_bodies import ROW as NLI_ROW

CLASSIFY = {"pairs": [PAIR]}


@pytest.fixture
def without_nli(letters: Server) -> Iterator[Client]:
    yield from _untouched(letters)


@pytest.fixture
def without_letters(alone: Server) -> Iterator[Client]:
    yield from _untouched(alone)


def _untouched(server: Server) -> Iterator[Client]:
    client = Client(server)
    before = client.counts()
    yield client
    assert client.counts() == before
    client.close()


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/classify", CLASSIFY),
        ("/classify", {"text": "a"}),
        ("/classify", {"text": ["a"] * 2000}),
        ("/decide", {**ROW, "engine": "nli"}),
        ("/decide", {**ROW, "engine": "nli", "workload": "w"}),
        ("/decide/shared", {**SHARED, "engine": "nli"}),
    ],
)
def test_without_the_nli_engine_its_routes_are_404_and_say_how(without_nli, path, body):
    answer = without_nli.post(path, json=body)
    assert error_of(answer) == (404, "not_found")
    expected = "The NLI engine is not loaded here; SEMIF_NLI_MODEL enables it."
    assert answer.json()["error"]["message"] == expected


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/decide", {**ROW, "engine": "letters"}),
        ("/decide", {**ROW, "engine": "letter", "workload": "w"}),
        ("/decide/shared", {**SHARED, "engine": "letters"}),
    ],
)
def test_without_the_letter_engine_its_routes_are_404_and_say_how(without_letters, path, body):
    answer = without_letters.post(path, json=body)
    assert error_of(answer) == (404, "not_found")
    message = answer.json()["error"]["message"]
    assert "SEMIF_MODEL" in message
    assert "engine nli" in message


@pytest.mark.parametrize("path", ["/classify", "/decide"])
def test_a_wrong_body_is_still_422_and_no_token_401(without_nli, path):
    assert error_of(without_nli.post(path, json={"engine": "nli"})) == (422, "invalid_request")
    bare = without_nli.post(path, json=CLASSIFY, headers={"Authorization": ""})
    assert error_of(bare) == (401, "unauthorized")


def test_alone_the_nli_engine_answers_its_routes(alone):
    client = Client(alone)
    assert client.post("/classify", json=CLASSIFY).status_code == 200
    assert client.post("/decide", json=NLI_ROW).json()["model"]["source"] == "scripted-nli"
    assert client.post("/decide", json=ROW).json()["engine"] == "nli"  # by default, being alone
    assert client.post("/decide/shared", json={**SHARED, "engine": "nli"}).status_code == 200
    client.close()


def test_health_tells_both_engines_the_letter_engine_first(client):
    health = client.get("/health").json()
    assert health["engines"] == ["letters", "nli"]
    assert (health["model"], health["prompt_version"]) == ("scripted", "direct-options-v1")
    assert health["workloads"] == ["of letters"]
    assert list(health)[-4:] == ["engine", "engines", "by_engine", "nli"]
    assert health["engine"] == "letters"
    assert health["by_engine"]["nli"]["workloads"] == ["cold", "hot"]
    assert health["nli"] == {
        "model": "scripted-nli",
        "revision": "r1",
        "dtype": "float32",
        "labels": ["contradiction", "entailment", "neutral"],
        "template": "Premise: {premise}\nHypothesis: {hypothesis}",
        "prompt_version": "nli-hyp-v1/nli-pair-v1",
        "max_pairs": 8,
        "workloads": ["cold", "hot"],
        "calibration": {"cold": {"temperature": 0.5}, "hot": {"temperature": 2.0}},
    }


def test_health_of_the_nli_engine_alone_is_that_engines(alone):
    client = Client(alone)
    health = client.get("/health").json()
    client.close()
    assert health["engines"] == ["nli"]
    assert health["model"] == health["nli"]["model"] == "scripted-nli"
    assert health["prompt_version"] == "nli-hyp-v1/nli-pair-v1"
    assert health["workloads"] == []


def test_health_without_the_nli_engine_has_no_word_of_it(letters):
    client = Client(letters)
    health = client.get("/health").json()
    client.close()
    assert health["engines"] == ["letters"]
    assert "nli" not in health


def test_the_openapi_document_tells_of_404_where_an_engine_may_be_absent(client):
    paths = client.get("/docs.json").json()["paths"]
    told = {
        path
        for path, item in paths.items()
        if "post" in item and "404" in item["post"]["responses"]
    }
    # /v1/decisions tells of a model that goes by no such name.
    assert told == {"/classify", "/decide", "/decide/shared", "/v1/decisions"}


def test_neither_engine_is_no_service(launch):
    server = launch(
        SEMIF_NLI_MODEL="", SEMIF_NLI_REVISION="", SEMIF_MODEL="none", SEMIF_REVISION=""
    )
    assert server.process.wait(60) == 1
    expected = "SEMIF_MODEL=none leaves nothing to serve; set SEMIF_NLI_MODEL."
    assert server.log() == f"semif-bento cannot start: {expected}\n"
