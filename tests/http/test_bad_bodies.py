"""Every 422 of a real server: it names the place, and nothing has reached the scorer."""

import json

import pytest
from live import DECISION, ROW, error_of


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('"state": 1, "state": 2', "The top level holds a key twice: `state`."),
        ('"state": {"k": {"a": 1, "a": 2}}', "`state.*` holds a key twice."),
        ('"state": NaN', "`state` is not a finite number."),
        ('"state": [{"k": -Infinity}]', "`state[0].*` is not a finite number."),
        ('"state": 1e999', "`state` is not a finite number."),
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


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "The body is not JSON at line 1, column 1."),
        (b'{"id": ', "The body is not JSON at line 1, column 8."),
        (b"[]", "The top level must be an object."),
        (b"NaN", "The top level is not a finite number."),
        (b"-1e999", "The top level is not a finite number."),
        (rb'"\ud800"', "The top level holds a lone surrogate."),
        (b"9" * 4301, "The top level is an integer of more than 4300 digits."),
        (b"\xff", "The body is not UTF-8 at byte 0."),
        (b'{"state": [{"k": "\xed\xa0\x80"}]}', "The body is not UTF-8 at byte 18."),
        (b'{"decisions": [{"id": 1, "id": 2}]}', "`decisions[0]` holds a key twice: `id`."),
    ],
)
@pytest.mark.parametrize("path", ["/decide", "/decide/shared"])
def test_a_body_that_is_wrong_as_a_whole_is_422(untouched, body, message, path):
    answer = untouched.send(body, path=path)
    assert error_of(answer) == (422, "invalid_request")
    assert answer.json()["error"]["message"] == message


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
