"""Every row of the contract's error table, from a real server; and what reached the scorer."""

import gzip
import json
from collections.abc import Iterator

import httpx
import pytest
from live import DECISION, JSON, ROW, SHARED, TOKEN, Client, error_of, raw


@pytest.fixture
def untouched(client: Client) -> Iterator[Client]:
    """A client whose requests must all be refused before the scorer."""
    before = client.counts()
    yield client
    assert client.counts() == before


def test_a_direct_answer_has_the_contracts_keys_in_their_order(client):
    answer = client.decide()
    assert answer.status_code == 200
    assert list(answer.json()) == [
        "id",
        "option_ids",
        "probabilities",
        "option_logits",
        "input_tokens",
        "forward_seconds",
        "total_seconds",
        "prompt_sha256",
        "prompt_version",
        "model",
        "readout",
        "probability_status",
    ]
    assert list(answer.json()["model"]) == [
        "source",
        "revision",
        "dtype",
        "device",
        "torch_version",
        "transformers_version",
    ]


def test_a_shared_answer_has_the_contracts_keys_in_their_order(client):
    answer = client.post("/decide/shared", json=SHARED).json()
    assert list(answer) == ["results", "timing"]
    assert [result["id"] for result in answer["results"]] == ["d", "e"]
    assert list(answer["results"][0]) == [
        "id",
        "option_ids",
        "probabilities",
        "option_logits",
        "input_tokens",
        "prompt_sha256",
        "prompt_version",
        "model",
        "readout",
        "probability_status",
    ]
    assert list(answer["results"][0]["model"])[-1] == "serving_config"
    assert list(answer["timing"]) == [
        "total_seconds",
        "encode_seconds",
        "prefix_tokens",
        "prefill_seconds",
        "replicate_seconds",
        "suffix_forward_seconds",
        "batch_size",
        "true_suffix_tokens",
        "padded_suffix_tokens",
        "branch_groups",
        "cache_hit",
    ]


def test_health_has_the_contracts_keys_in_their_order_and_no_null(client):
    health = httpx.get(f"{client.server.url}/health").json()
    assert list(health)[:7] == (
        [
            "status",
            "semif_commit",
            "model",
            "vram_cap_gib",
            "max_tokens",
            "max_decisions",
            "workloads",
        ]
    )
    assert health["workloads"] == ["cold", "hot"]
    assert None not in health.values()


def test_a_workload_adds_a_calibrated_view_and_leaves_the_native_numbers(client):
    native, hot = client.decide().json(), client.decide(workload="hot").json()
    assert hot.pop("calibrated")["temperature"] == 2.0
    assert hot == native


def test_diagnostics_come_when_asked_for_and_only_then(client):
    assert "diagnostics" not in client.decide(diagnostics=False).json()
    asked = client.decide(diagnostics=True).json()["diagnostics"]
    assert list(asked) == ["letter_mass", "margin", "near_tie"]


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


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('"state": 1, "state": 2', "The top level holds a key twice: `state`."),
        ('"state": {"k": {"a": 1, "a": 2}}', "`state.*` holds a key twice."),
        ('"state": NaN', "`state` is not a finite number."),
        ('"state": [{"k": -Infinity}]', "`state[0].*` is not a finite number."),
        ('"state": [1, 1e999]', "`state[1]` is not a finite number."),
        (r'"id": "\ud800"', "`id` holds a lone surrogate."),
        (r'"state": {"\udfff": 1}', "`state` holds a key with a lone surrogate."),
        (r'"options": [{"id": "\ud800"}]', "`options[0].id` holds a lone surrogate."),
        ('"state": ' + "9" * 4301, "`state` is an integer of more than 4300 digits."),
        ('"state": [' + "9" * 5000 + "]", "`state[0]` is an integer of more than 4300 digits."),
        ('"more": 1', "The top level holds a key that is not known here."),
        ('"options": [{"id": "y", "description": "", "more": 1}]', "`options[0]` holds a key that"),
    ],
)
def test_strict_json_is_422_and_names_the_place(untouched, text, place):
    row = json.dumps({key: value for key, value in ROW.items() if key != text.split('"')[1]})
    answer = untouched.send(f"{row[:-1]}, {text}}}".encode())
    assert error_of(answer) == (422, "invalid_request")
    assert answer.json()["error"]["message"].startswith(place)


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b'{"a": "\xed\xa0\x80"}', b"nul", b"[]"])
def test_a_body_that_is_no_json_object_in_utf8_is_422(untouched, body):
    assert error_of(untouched.send(body)) == (422, "invalid_request")


@pytest.mark.parametrize("depth", [101, 1000, 30000])
def test_deep_nesting_is_422_at_any_depth_and_the_server_lives(untouched, depth):
    body = json.dumps(ROW).replace('"some state"', "[" * depth + "]" * depth).encode()
    assert error_of(untouched.send(body)) == (422, "invalid_request")


def test_a_byte_order_mark_is_taken(client):
    assert client.send(b"\xef\xbb\xbf" + json.dumps(ROW).encode()).status_code == 200


def test_digits_and_floats_reach_the_prompt_as_semif_writes_them(client):
    row = json.dumps(ROW).replace('"some state"', "[12345678901234567890123, 1.10, 1E5, -0.0]")
    plain = client.decide(state=json.loads("[12345678901234567890123, 1.1, 100000.0, -0.0]"))
    assert client.send(row.encode()).json()["prompt_sha256"] == plain.json()["prompt_sha256"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"id": ""}, "`id` must not be empty."),
        ({"id": 1}, "`id` must be a string."),
        ({"question": None}, "`question` must be a string."),
        ({"state": ""}, "`state` must be a nonempty string, object or array."),
        ({"state": {}}, "`state` must be a nonempty string, object or array."),
        ({"state": True}, "`state` must be a nonempty string, object or array."),
        ({"options": {}}, "`options` must be an array."),
        ({"options": DECISION["options"][:1]}, "`options` must hold 2 or more."),
        ({"options": DECISION["options"] * 9}, "`options` must hold 16 or fewer."),
        ({"options": DECISION["options"][:1] * 2}, "`options` must have ids that differ"),
        ({"options": ["a", "b"]}, "`options[0]` must be an object."),
        ({"options": [{"id": "a"}] * 2}, "`options[0].description` is missing."),
        ({"diagnostics": 1}, "`diagnostics` must be true or false."),
        ({"workload": None}, "`workload` must be a string."),
        ({"workload": "nope"}, "The workload is unknown; known workloads: cold, hot."),
    ],
)
def test_a_row_against_the_schema_is_422_and_names_the_place(untouched, change, message):
    answer = untouched.decide(**change)
    assert error_of(answer) == (422, "invalid_request")
    assert answer.json()["error"]["message"].startswith(message)


@pytest.mark.parametrize(
    ("decisions", "message"),
    [
        ([], "`decisions` must hold 1 or more."),
        ([DECISION, DECISION], "`decisions` must have ids that differ"),
        ([{**DECISION, "id": str(n)} for n in range(4)], "`decisions` has 4 entries; at most 3"),
        ([DECISION, {**DECISION, "state": "x"}], "`decisions[1]` holds a key that is not known"),
        ([DECISION, {"id": "e", "question": "q"}], "`decisions[1].options` is missing."),
    ],
)
def test_shared_decisions_against_the_schema_are_422(untouched, decisions, message):
    answer = untouched.post("/decide/shared", json={"state": "s", "decisions": decisions})
    assert error_of(answer) == (422, "invalid_request")
    assert answer.json()["error"]["message"].startswith(message)


@pytest.mark.parametrize("body", [b"", b"{}"])
def test_health_by_post_takes_no_body_or_an_empty_one(client, body):
    assert client.send(body, path="/health").json()["status"] == "ok"


def test_health_by_post_refuses_anything_else(client):
    assert error_of(client.send(b'{"a": 1}', path="/health")) == (422, "invalid_request")


def test_out_of_memory_is_503_with_retry_after_and_the_server_goes_on(client):
    answer = client.decide(state={"raise": "out of memory"})
    assert error_of(answer) == (503, "out_of_memory")
    assert int(answer.headers["retry-after"]) >= 1
    assert client.decide().status_code == 200


@pytest.mark.parametrize("kind", ["not finite", "unexpected"])
def test_a_failed_scorer_is_500_and_the_server_goes_on(client, kind):
    assert error_of(client.decide(state={"raise": kind})) == (500, "scoring_failed")
    assert client.decide().status_code == 200


def test_every_answer_carries_a_request_id_the_clients_own_where_it_is_plain(client):
    assert client.get("/health").headers["x-request-id"]
    for path in ("/decide", "/nope", "/livez"):
        answer = client.get(path, headers={"X-Request-Id": "my-id_1.2"})
        assert answer.headers["x-request-id"] == "my-id_1.2"
    for strange in ("two words", "x" * 65, "é"):
        answer = client.get("/livez", headers={b"X-Request-Id": strange.encode()})
        assert len(answer.headers["x-request-id"]) == 32
