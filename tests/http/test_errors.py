"""Every row of the contract's error table, from a real server; and what reached the scorer."""

import gzip
import json

import httpx
import pytest
from live import JSON, ROW, TOKEN, error_of, raw


@pytest.mark.parametrize("path", ["/decide", "/metrics", "/docs.json", "/schema.json", "/", "/no"])
def test_every_other_path_is_401_without_a_token(untouched, path):
    answer = httpx.get(untouched.server.url + path)
    assert error_of(answer) == (401, "unauthorized")
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "given",
    [
        b"Bearer " + b"u" * 40,
        b"Bearer",
        TOKEN.encode(),
        b"Basic " + TOKEN.encode(),
        b"Bearer " + TOKEN.encode() + b"x",
        "Bearer é".encode(),
        "Bearer é".encode("latin-1"),
        b"Bearer " + "ключ".encode() * 10,
    ],
)
def test_a_wrong_token_is_401_in_whatever_bytes(untouched, given):
    answer = httpx.post(
        f"{untouched.server.url}/decide", json=ROW, headers={b"Authorization": given}
    )
    assert error_of(answer) == (401, "unauthorized")


def test_the_scheme_is_bearer_in_any_case(client):
    assert client.post("/decide", json=ROW, headers={"Authorization": f"bearer {TOKEN}"}).is_success


@pytest.mark.parametrize("path", ["/health", "/livez", "/readyz", "/healthz"])
def test_probes_answer_without_a_token(server, path):
    assert httpx.get(server.url + path).status_code == 200


@pytest.mark.parametrize("path", ["/nope", "/decide/", "/decide/shared/x", "/static_content/a.js"])
def test_an_unknown_path_is_404(untouched, path):
    assert error_of(untouched.post(path, json=ROW)) == (404, "not_found")


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("GET", "/decide", "POST"),
        ("DELETE", "/decide/shared", "POST"),
        ("PUT", "/health", "GET, HEAD, POST"),
        ("POST", "/metrics", "GET, HEAD"),
    ],
)
def test_a_wrong_method_is_405_and_names_the_right_ones(untouched, method, path, allow):
    answer = untouched.request(method, path)
    assert error_of(answer) == (405, "method_not_allowed")
    assert answer.headers["allow"] == allow


def test_a_body_over_the_limit_is_413_by_its_length(untouched):
    assert error_of(untouched.send(b"x" * 65537)) == (413, "request_too_large")


def test_a_body_over_the_limit_is_413_when_counted_while_streaming(untouched):
    answer = untouched.post("/decide", content=(b"x" * 4096 for _ in range(64)), headers=JSON)
    assert error_of(answer) == (413, "request_too_large")


def test_a_body_far_over_the_limit_is_413_though_the_client_writes_on(untouched):
    answer = raw(untouched.server, b"x" * (8 << 20), declared_bytes=8 << 20)
    assert answer.startswith(b"HTTP/1.1 413")


def test_a_body_declared_over_the_limit_is_413_though_it_never_comes(untouched):
    answer = raw(untouched.server, b"", declared_bytes=65537)
    assert answer.startswith(b"HTTP/1.1 413")
    assert b'"request_too_large"' in answer


def test_a_body_at_the_limit_is_taken(client):
    body = json.dumps(ROW).encode()
    assert client.send(body + b" " * (65536 - len(body))).status_code == 200


@pytest.mark.parametrize(
    "media",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/vnd.bentoml+pickle",
        "application/json; charset=utf-16",
        "application/jsonl",
        "",
    ],
)
def test_a_body_that_is_not_json_is_415(untouched, media):
    answer = untouched.send(json.dumps(ROW).encode(), **{"Content-Type": media})
    assert error_of(answer) == (415, "unsupported_media_type")


def test_two_content_types_are_415(untouched):
    headers = [(b"Content-Type", b"application/json"), (b"Content-Type", b"multipart/form-data")]
    answer = untouched.post("/decide", content=json.dumps(ROW), headers=headers)
    assert error_of(answer) == (415, "unsupported_media_type")


@pytest.mark.parametrize("encoding", ["gzip", "br", "zstd", "identity, gzip"])
def test_an_encoded_body_is_415(untouched, encoding):
    body = gzip.compress(json.dumps(ROW).encode())
    answer = untouched.send(body, **{"Content-Encoding": encoding})
    assert error_of(answer) == (415, "unsupported_media_type")


@pytest.mark.parametrize("media", ["application/json; charset=UTF-8", "Application/JSON"])
def test_json_is_taken_however_its_media_type_is_written(client, media):
    body = json.dumps(ROW).encode()
    assert client.send(body, **{"Content-Type": media}).status_code == 200


def test_out_of_memory_is_503_with_retry_after_and_the_server_goes_on(client):
    answer = client.decide(state={"raise": "out of memory"})
    assert error_of(answer) == (503, "out_of_memory")
    assert int(answer.headers["retry-after"]) >= 1
    assert client.decide().status_code == 200


@pytest.mark.parametrize(
    "state", [{"raise": "not finite"}, {"raise": "unexpected"}, {"answer": "malformed"}]
)
def test_a_failed_scorer_is_500_and_the_server_goes_on(client, state):
    assert error_of(client.decide(state=state)) == (500, "scoring_failed")
    assert client.decide().status_code == 200


def test_every_answer_carries_a_request_id_the_clients_own_where_it_is_plain(client):
    assert client.get("/health").headers["x-request-id"]
    for path in ("/decide", "/nope", "/livez"):
        answer = client.get(path, headers={"X-Request-Id": "my-id_1.2"})
        assert answer.headers["x-request-id"] == "my-id_1.2"
    for strange in ("two words", "x" * 65, "é"):
        answer = client.get("/livez", headers={b"X-Request-Id": strange.encode()})
        assert len(answer.headers["x-request-id"]) == 32
