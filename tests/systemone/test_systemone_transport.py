"""Tokens, encodings, media types, limits and failures on System One's routes of a real server."""

import gzip
import json

import httpx
import pytest
from backports import zstd
from live import TOKEN, together

from semif_bento.api.openapi import Corrected

BODY = {
    "model": "scripted",
    "state": "The tea was cold.",
    "questions": {"q": {"type": "noul", "instructions": "Is it cold?"}},
}
RAW = json.dumps(BODY).encode()


def error_type(response):
    return response.json()["detail"]["error_type"]


@pytest.mark.parametrize(("method", "path"), [("POST", "/v1/systemone"), ("GET", "/v1/models")])
def test_no_token_is_403_and_a_wrong_one_401(unasked, method, path):
    url = unasked.server.url + path
    missing = httpx.request(method, url)
    assert (missing.status_code, error_type(missing)) == (403, "authentication_error")
    for given in (b"Bearer x", TOKEN.encode(), "Bearer é".encode(), b"Basic " + TOKEN.encode()):
        wrong = httpx.request(method, url, headers={b"Authorization": given})
        assert (wrong.status_code, error_type(wrong)) == (401, "authentication_error")


def test_the_native_routes_keep_their_own_errors(unasked):
    answer = httpx.post(f"{unasked.server.url}/decide", json={})
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "unauthorized")
    assert "x-typesafe-request-id" not in answer.headers


def test_every_answer_carries_the_services_request_id(jev):
    answers = [
        jev.ask(),
        jev.get("/v1/models"),
        jev.ask(model="x"),
        jev.send_json([]),
        jev.get("/v1/nothing"),
        jev.get("/v1/systemone"),
        jev.post_bytes(b"x" * 65537),
        jev.post_bytes(RAW, **{"Content-Encoding": "br"}),
        jev.ask(state={"raise": "out of memory"}),
        jev.ask(state={"raise": "unexpected"}),
        httpx.get(f"{jev.server.url}/v1/models"),
        httpx.get(f"{jev.server.url}/v1/models", headers={"Authorization": "Bearer x"}),
    ]
    statuses = [answer.status_code for answer in answers]
    assert statuses == [200, 200, 400, 422, 404, 405, 413, 415, 529, 500, 403, 401]
    ids = [answer.headers["x-typesafe-request-id"] for answer in answers]
    assert all(
        one == f"req_{a.headers['x-request-id']}" for one, a in zip(ids, answers, strict=True)
    )
    assert len(set(ids)) == len(ids)


def test_unknown_paths_and_methods_answer_as_the_service_does(unasked):
    assert unasked.get("/v1/nothing").json() == {"detail": "Not Found"}
    wrong = unasked.get("/v1/systemone")
    assert wrong.json() == {"detail": "Method Not Allowed"}
    assert wrong.headers["allow"] == "POST"


@pytest.mark.parametrize(
    ("encoding", "encode"),
    [
        ("gzip", gzip.compress),
        ("zstd", zstd.compress),
        ("GZIP", gzip.compress),
        ("identity", bytes),
    ],
)
def test_compressed_bodies_are_taken(jev, encoding, encode):
    response = jev.post_bytes(encode(RAW), **{"Content-Encoding": encoding})
    assert response.json() == jev.post_bytes(RAW).json()


def test_a_large_compressed_body_is_taken_up_to_the_limit_when_decoded(jev):
    padded = RAW + b" " * (65536 - len(RAW))
    encoded = {"Content-Encoding": "zstd"}
    assert jev.post_bytes(zstd.compress(padded), **encoded).status_code == 200
    over = jev.post_bytes(zstd.compress(padded + b" "), **encoded)
    assert (over.status_code, error_type(over)) == (413, "request_too_large")


@pytest.mark.parametrize(("encoding", "encode"), [("gzip", gzip.compress), ("zstd", zstd.compress)])
def test_a_bomb_is_413(unasked, encoding, encode):
    bomb = encode(b" " * (32 << 20))
    assert len(bomb) < 65536
    response = unasked.post_bytes(bomb, **{"Content-Encoding": encoding})
    assert (response.status_code, error_type(response)) == (413, "request_too_large")


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
@pytest.mark.parametrize("fault", ["cut", "more", "plain", "empty"])
def test_a_broken_stream_is_400(unasked, encoding, fault):
    whole = (gzip if encoding == "gzip" else zstd).compress(RAW)
    body = {"cut": whole[:-9], "more": whole + b"x", "plain": RAW, "empty": b""}[fault]
    response = unasked.post_bytes(body, **{"Content-Encoding": encoding})
    assert (response.status_code, error_type(response)) == (400, "api_usage_error")


@pytest.mark.parametrize("encoding", ["br", "deflate", "gzip, zstd", "compress"])
def test_another_encoding_is_415(unasked, encoding):
    response = unasked.post_bytes(RAW, **{"Content-Encoding": encoding})
    assert (response.status_code, error_type(response)) == (415, "unsupported_media_type")


def test_images_are_refused_clearly(unasked):
    form = {"Content-Type": "multipart/form-data; boundary=x"}
    response = unasked.post_bytes(b"--x--", **form)
    assert response.status_code == 400
    assert "Images are not supported" in response.json()["detail"]["message"]


def test_another_media_type_is_415(unasked):
    response = unasked.post_bytes(RAW, **{"Content-Type": "text/plain"})
    assert (response.status_code, error_type(response)) == (415, "unsupported_media_type")


def test_a_byte_order_mark_is_taken(jev):
    assert jev.post_bytes(b"\xef\xbb\xbf" + RAW).status_code == 200


def test_out_of_memory_is_529_with_a_short_retry_after(jev):
    response = jev.ask(state={"raise": "out of memory"})
    assert (response.status_code, error_type(response)) == (529, "out_of_memory")
    assert 1 <= int(response.headers["retry-after"]) <= 10


@pytest.mark.parametrize("kind", ["not finite", "unexpected"])
def test_a_failed_scorer_is_500(jev, kind):
    response = jev.ask(state={"raise": kind})
    assert (response.status_code, error_type(response)) == (500, "scoring_failed")


def test_a_full_queue_is_429_and_a_late_answer_504(jev, gate):
    calls = [lambda: jev.ask(state=gate.state)] * 4
    answers = together(*calls, gap_s=0)
    gate.open()
    assert sorted(answer.status_code for answer in answers) == [429, 429, 504, 504]
    for answer in answers:
        if answer.status_code == 429:
            assert 1 <= int(answer.headers["retry-after"]) <= 10
            assert error_type(answer) == "overloaded"
        else:
            assert error_type(answer) == "timeout"


def test_request_text_reaches_neither_logs_nor_metrics(jev):
    marker = "axolotl-5512"
    noul = {"type": "noul", "instructions": marker, "criteria": {"true": marker}}
    for questions in (
        {marker: noul},
        {marker: {"type": marker}},
        {marker: {"type": "noul"}},
        {"q": {"type": "choice", "criteria": {marker: 1}}},
        {"q": {"type": "choice", "criteria": {marker: None, "b": marker}}},
    ):
        jev.ask(questions, state={marker: marker})
    jev.ask(model=marker)
    jev.ask(headers={"x-semif-workload": marker, "x-semif-diagnostics": marker})
    for kind in ("unexpected", "not finite", "out of memory"):
        jev.ask({marker: noul}, state={"raise": kind, marker: marker})
    jev.ask({marker: noul}, state={"answer": "out of range"})
    jev.post_bytes(f'{{"{marker}": {marker}'.encode())
    jev.post_bytes(marker.encode(), **{"Content-Encoding": "gzip"})
    jev.get("/v1/models", headers={"X-Request-Id": "the-last-one"})
    jev.server.log_line("request_id=the-last-one ")
    assert marker not in jev.server.log()
    assert marker not in jev.get("/metrics").text


def test_the_openapi_document_tells_system_ones_routes(jev):
    document = jev.get("/docs.json").json()
    post = document["paths"]["/v1/systemone"]["post"]
    assert set(post["responses"]) == {
        *("200", "400", "401", "403", "413", "415", "422", "429", "500", "504", "529"),
    }
    assert post["requestBody"]["required"] is True
    assert set(document["paths"]["/v1/models"]["get"]["responses"]) == {"200", "401", "403"}
    schema = document["components"]["schemas"]["SystemOneRequest"]
    assert schema["additionalProperties"] is False
    assert set(schema["required"]) == {"model", "state", "questions"}
    assert Corrected({"paths": {}}).asdict()["paths"]["/v1/systemone"]["post"]
