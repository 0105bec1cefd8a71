"""What POST /classify refuses: which place is named, and that neither engine was reached."""

import json

import httpx
import pytest
from live import JSON, ROW, error_of
from nli_bodies import PAIR

ONE_KIND = "The top level must have one of pairs, input_ids and text."
TEXT_RULE = "`text` must be a nonempty string, or an array of those."
IMAGE_RULE = "`image_data` must be null: this model reads text only."


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, ONE_KIND),
        ({"pairs": [PAIR], "text": "a"}, ONE_KIND),
        ({"pairs": [PAIR], "input_ids": [[1]]}, ONE_KIND),
        ({"input_ids": [[1]], "text": ["a"]}, ONE_KIND),
        ({"image_data": None}, ONE_KIND),
        ([], "The top level must be an object."),
        ({"texts": "a"}, "The top level holds a key that is not known here."),
        ({"text": "a", "model": "x"}, "The top level holds a key that is not known here."),
        ({"pairs": None}, "`pairs` must not be null."),
        ({"pairs": []}, "`pairs` must hold 1 or more."),
        ({"pairs": PAIR}, "`pairs` must be an array."),
        ({"pairs": ["a"]}, "`pairs[0]` must be an object."),
        ({"pairs": [PAIR, None]}, "`pairs[1]` must be an object."),
        ({"pairs": [{"premise": "a"}]}, "`pairs[0].hypothesis` is missing."),
        ({"pairs": [{**PAIR, "premise": ""}]}, "`pairs[0].premise` must not be empty."),
        ({"pairs": [{**PAIR, "hypothesis": 1}]}, "`pairs[0].hypothesis` must be a string."),
        ({"pairs": [{**PAIR, "hypothesis": None}]}, "`pairs[0].hypothesis` must be a string."),
        ({"pairs": [{**PAIR, "label": 1}]}, "`pairs[0]` holds a key that is not known here."),
        ({"input_ids": None}, "`input_ids` must not be null."),
        ({"input_ids": []}, "`input_ids` must hold 1 or more."),
        ({"input_ids": [1, 2]}, "`input_ids[0]` must be an array."),
        ({"input_ids": [[1], []]}, "`input_ids[1]` must hold 1 or more."),
        ({"input_ids": [[1, True]]}, "`input_ids[0][1]` must be an integer."),
        ({"input_ids": [[1.0]]}, "`input_ids[0][0]` must be an integer."),
        ({"input_ids": [["1"]]}, "`input_ids[0][0]` must be an integer."),
        ({"input_ids": [[1, -1]]}, "`input_ids[0][1]` must be 0 or more."),
        ({"text": None}, TEXT_RULE),
        ({"text": ""}, TEXT_RULE),
        ({"text": []}, TEXT_RULE),
        ({"text": ["a", ""]}, TEXT_RULE),
        ({"text": ["a", None]}, TEXT_RULE),
        ({"text": {"a": 1}}, TEXT_RULE),
        ({"text": 7}, TEXT_RULE),
        ({"text": "a", "image_data": "data:image/png;base64,"}, IMAGE_RULE),
        ({"text": "a", "image_data": []}, IMAGE_RULE),
        ({"text": ["a", "b"], "image_data": [None, "x"]}, IMAGE_RULE),
        ({"text": "a", "image_data": False}, IMAGE_RULE),
        ({"pairs": [PAIR] * 9}, "The request makes 9 pairs; at most 8 are taken."),
        ({"input_ids": [[1]] * 10}, "The request makes 10 pairs; at most 8 are taken."),
        ({"text": ["a"] * 11}, "The request makes 11 pairs; at most 8 are taken."),
    ],
)
def test_a_wrong_body_is_422_and_names_the_place(untouched, body, message):
    answer = untouched.post("/classify", json=body)
    assert error_of(answer) == (422, "invalid_request")
    assert answer.json()["error"]["message"] == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"text": "a", "text": "b"}', "The top level holds a key twice: `text`."),
        (
            '{"pairs": [{"premise": "a", "premise": "b"}]}',
            "`pairs[0]` holds a key twice: `premise`",
        ),
        ('{"input_ids": [[1, NaN]]}', "`input_ids[0][1]` is not a finite number."),
        ('{"input_ids": [[1e999]]}', "`input_ids[0][0]` is not a finite number."),
        (f'{{"input_ids": [[{"9" * 4301}]]}}', "`input_ids[0][0]` is an integer of more than 4300"),
        ('{"text": ["a", "\\ud800"]}', "`text[1]` holds a lone surrogate."),
        ('{"pairs": [{"premise": "\\udc00"}]}', "`pairs[0].premise` holds a lone surrogate."),
        ('{"image_data": [NaN]}', "`image_data[0]` is not a finite number."),
    ],
)
def test_json_that_is_not_strict_is_422_and_names_the_place(untouched, text, message):
    answer = untouched.send(text.encode(), "/classify")
    assert error_of(answer) == (422, "invalid_request")
    assert answer.json()["error"]["message"].startswith(message)


@pytest.mark.parametrize("value", ["other", "", None, 1, ["nli"], {"nli": 1}, True])
@pytest.mark.parametrize("path", ["/decide", "/decide/shared"])
def test_an_engine_that_is_not_one_of_two_is_422_and_named(untouched, path, value):
    answer = untouched.post(path, json={**ROW, "engine": value})
    if path == "/decide":
        assert (
            answer.json()["error"]["message"] == "`engine` must be one of letters, likelihood, nli."
        )
    assert error_of(answer) == (422, "invalid_request")


def test_an_id_beyond_any_vocabulary_is_no_fault_of_ours(client):
    answer = client.post("/classify", json={"input_ids": [[10**400]]})
    assert answer.status_code in (200, 422)


def test_classify_needs_the_token(untouched):
    answer = httpx.post(f"{untouched.server.url}/classify", json={"text": "a"})
    assert error_of(answer) == (401, "unauthorized")


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_classify_is_asked_by_post_alone(untouched, method):
    answer = untouched.request(method, "/classify")
    assert error_of(answer) == (405, "method_not_allowed")
    assert answer.headers["allow"] == "POST"


def test_a_body_that_is_not_json_is_415(untouched):
    answer = untouched.send(b"{}", "/classify", **{"Content-Type": "text/plain"})
    assert error_of(answer) == (415, "unsupported_media_type")
    answer = untouched.send(b"{}", "/classify", **{"Content-Encoding": "gzip"})
    assert error_of(answer) == (415, "unsupported_media_type")


def test_a_body_over_the_limit_is_413(untouched):
    assert error_of(untouched.send(b"x" * 65537, "/classify")) == (413, "request_too_large")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("too long", (422, "invalid_request")),
        ("out of memory", (503, "out_of_memory")),
        ("not finite", (500, "scoring_failed")),
        ("unexpected", (500, "scoring_failed")),
    ],
)
def test_a_failure_of_the_classifier_keeps_its_status_and_the_server_goes_on(
    client, kind, expected
):
    asked = {"premise": f"raise {kind}", "hypothesis": "h"}
    answer = client.post("/classify", json={"pairs": [PAIR, asked]})
    assert error_of(answer) == expected
    assert client.post("/classify", json={"pairs": [PAIR]}).status_code == 200


@pytest.mark.parametrize("body", [{"pairs": [PAIR, PAIR]}, {"text": ["a", "b"]}])
def test_an_answer_that_lacks_an_input_is_500_and_none(client, body):
    marked = json.loads(
        json.dumps(body).replace("wet", "answer incomplete").replace('"a"', '"answer incomplete"')
    )
    answer = client.post("/classify", json=marked)
    assert error_of(answer) == (500, "scoring_failed")


MARKER = "zebrafish-7741"
MARKED = {"premise": MARKER, "hypothesis": f"{MARKER} raise unexpected"}


def test_a_marker_in_every_place_comes_out_nowhere(client):
    bodies = [
        {MARKER: 1},
        {"pairs": [{**PAIR, MARKER: 1}]},
        {"pairs": MARKER},
        {"pairs": [MARKER]},
        {"pairs": [{**PAIR, "premise": [MARKER]}]},
        {"input_ids": [[MARKER]]},
        {"input_ids": MARKER},
        {"text": {MARKER: MARKER}},
        {"text": MARKER, "image_data": MARKER},
        {"text": MARKER, "pairs": [PAIR]},
        {"pairs": [MARKED]},
        {"text": [f"{MARKER} raise unexpected"]},
        {"text": [f"{MARKER} raise too long"]},
        {"text": [MARKER] * 9},
    ]
    answers = [client.post("/classify", json=body) for body in bodies]
    row = {**ROW, "engine": "nli", "id": MARKER, "question": MARKER}
    answers += [
        client.post("/decide", json={**row, "state": f"{MARKER} raise unexpected"}),
        client.post("/decide", json={**row, "state": {MARKER: "x", "raise": "not finite"}}),
        client.post("/decide", json={**row, "workload": MARKER}),
        client.post("/decide", json={**row, "engine": MARKER}),
        client.post("/decide", json={**row, "engine": [MARKER]}),
    ]
    assert client.post("/classify", json={"text": MARKER}).status_code == 200
    client.get("/health", headers={"X-Request-Id": "the-last-nli"})
    client.server.log_line("request_id=the-last-nli ")
    assert all(answer.status_code >= 400 for answer in answers)
    seen = [answer.text for answer in answers] + [str(answer.headers) for answer in answers]
    for text in [*seen, client.server.log(), client.get("/metrics").text]:
        assert MARKER not in text.lower()


def test_a_letter_request_is_what_it_was(client):
    plain = client.send(json.dumps(ROW).encode(), "/decide", **JSON).json()
    named = client.decide(engine="letter").json()
    assert plain["option_logits"] == named["option_logits"]
    assert "support" not in plain
    assert plain["model"]["source"] == "scripted"
