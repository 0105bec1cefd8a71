"""POST /v1/decisions and the models of a real server, as bytes on the wire."""

import gzip
import json

import httpx
import pytest
from decision_bodies import CHOICE, PREDICATE, SCORE, body
from decisions_client import PATH, doing, error_of
from live import JSON, TOKEN, together

NAMES = ["scripted@r1", "scripted", "gpt-6-luna", "org/model@r1"]


def test_every_kind_is_answered_in_order_with_versions_in_the_headers(openai):
    response = openai.ask(questions=[PREDICATE, CHOICE, SCORE])
    assert response.status_code == 200, response.text
    answers = response.json()["answers"]
    assert [one["type"] for one in answers] == ["predicate", "choice", "score"]
    assert [one["name"] for one in answers] == [None, "tone", "grade"]
    assert answers[1]["choice"] == "true"
    assert response.json()["model"] == "scripted@r1"
    assert response.headers["x-semif-items"] == "decisions-items-v1"
    assert response.headers["x-semif-questions"] == "decisions-questions-v1"
    assert "x-typesafe-request-id" not in response.headers


def test_cached_tokens_are_those_of_the_cache(openai):
    usages = [openai.ask().json()["usage"] for _ in range(2)]
    cached = [usage["input_tokens_details"]["cached_tokens"] for usage in usages]
    assert sorted(cached) == [0, 5]
    assert all(usage["input_tokens"] == usage["total_tokens"] == 9 for usage in usages)


def test_headers_ask_for_more(openai):
    [answer] = openai.ask({"x-semif-diagnostics": "true"}).json()["answers"]
    assert answer["x_letter_mass"] == 0.75
    assert "x_letter_mass" not in openai.ask().json()["answers"][0]


def test_a_body_may_be_compressed(openai):
    sent = gzip.compress(json.dumps(body()).encode())
    headers = {**JSON, "content-encoding": "gzip"}
    assert openai.post(PATH, content=sent, headers=headers).status_code == 200


@pytest.mark.parametrize("given", [{}, {"authorization": "Bearer wrong"}])
def test_a_wrong_token_and_none_are_401(decisions_server, given):
    answer = httpx.post(decisions_server.url + PATH, json=body(), headers=given)
    assert error_of(answer) == (401, None, "invalid_api_key")
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    ("sent", "param", "code"),
    [
        (b"", None, "invalid_request"),
        (b"{", None, "invalid_request"),
        (b"\xff", None, "invalid_request"),
        (b'{"model": "m", "model": "m"}', None, "invalid_value"),
        (b'{"input": [{"content": NaN}]}', "input[0].content", "invalid_value"),
        (b'{"questions": [{"name": "\\ud800"}]}', "questions[0].name", "invalid_value"),
        (
            b'{"input": [{"content": [{"data": {"secret": 1e999}}]}]}',
            "input[0].content[0].data.*",
            "invalid_value",
        ),
        (b"[]", None, "invalid_type"),
        (b'{"model": "m", "input": "", "questions": []}', "questions", "empty_array"),
    ],
)
def test_what_does_not_fit_is_400_and_never_repeated(unasked, sent, param, code):
    answer = unasked.post(PATH, content=sent, headers=JSON)
    assert error_of(answer) == (400, param, code)
    assert "secret" not in answer.text


def test_other_refusals_before_the_scorer(unasked):
    def of(**given):
        return error_of(unasked.request(**{"method": "POST", "url": PATH, **given}))

    assert of(method="GET") == (405, None, "method_not_allowed")
    assert of(url=f"{PATH}/x") == (404, None, "not_found")
    assert of(content=b"x", headers={"content-type": "text/plain"}) == (
        415,
        None,
        "unsupported_media_type",
    )
    assert of(content=b"x" * 70_000, headers=JSON) == (413, None, "request_too_large")
    unknown = unasked.ask(model="secret")
    assert error_of(unknown) == (404, "model", "model_not_found")
    assert "secret" not in unknown.text


@pytest.mark.parametrize(
    ("what", "error"),
    [
        ({"raise": "too long"}, (400, "input", "context_length_exceeded")),
        ({"raise": "not finite"}, (500, None, "scoring_failed")),
        ({"raise": "unexpected", "secret": "secret"}, (500, None, "scoring_failed")),
        ({"raise": "out of memory"}, (503, None, "out_of_memory")),
        ({"sleep": 4}, (504, None, "timeout")),
    ],
)
def test_what_the_scorer_cannot_do_has_openais_body(openai, what, error):
    answer = openai.ask(input=doing(**what))
    assert error_of(answer) == error
    assert "secret" not in answer.text
    assert ("retry-after" in answer.headers) == (answer.status_code == 503)


def test_a_full_queue_is_429_with_a_time_to_come_again(openai):
    def sleep() -> httpx.Response:
        return openai.ask(input=doing(sleep=0.6))

    *_, last = together(sleep, sleep, sleep, gap_s=0.05)
    assert error_of(last) == (429, None, "overloaded")
    assert 1 <= int(last.headers["retry-after"]) <= 10


def test_the_log_names_the_route_and_no_word_of_the_request(openai, decisions_server):
    asked = openai.ask({"x-request-id": "by-me"}, input="zq7-secret")
    assert asked.headers["x-request-id"] == "by-me"
    assert f"route={PATH} status=200" in decisions_server.log_line("request_id=by-me")
    openai.get("/v1/models/zq7-secret", headers={"x-request-id": "by-name"})
    line = decisions_server.log_line("request_id=by-name")
    assert "route=/v1/models/{model} status=404" in line
    assert "zq7-secret" not in decisions_server.log()
    assert "zq7-secret" not in openai.get("/metrics").text


def test_the_models_are_listed_for_both_sdks(openai):
    listed = openai.get("/v1/models").json()
    assert listed["object"] == "list"
    assert [one["id"] for one in listed["data"]] == NAMES
    assert [one["name"] for one in listed["models"]] == NAMES
    assert {one["object"] for one in listed["data"]} == {"model"}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("quoted", [True, False])
def test_a_model_is_found_by_any_of_its_names(openai, name, quoted):
    path = name.replace("/", "%2F").replace("@", "%40") if quoted else name
    found = openai.get(f"/v1/models/{path}")
    assert found.json()["id"] == name
    assert found.json()["created"] > 1_700_000_000


def test_a_model_that_is_not_there_is_404_and_one_without_a_token_401(openai, decisions_server):
    for name in ("nope", "a/b/c", "scripted@r1/"):
        unknown = openai.get(f"/v1/models/{name}")
        assert error_of(unknown) == (404, "model", "model_not_found")
    assert error_of(openai.get("/v1/models/")) == (404, None, "not_found")
    assert error_of(httpx.get(f"{decisions_server.url}/v1/models/scripted"))[0] == 401
    assert openai.head("/v1/models/scripted").status_code == 200
    assert error_of(openai.delete("/v1/models/scripted")) == (405, None, "method_not_allowed")


def test_a_right_token_is_needed_before_anything_is_told(decisions_server):
    answer = httpx.get(f"{decisions_server.url}{PATH}", headers={"authorization": TOKEN})
    assert error_of(answer)[0] == 401
