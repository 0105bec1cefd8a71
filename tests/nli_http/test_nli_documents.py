"""What the documents tell of the NLI routes is what the server takes and answers."""

from typing import Any

import jsonschema
import pytest
from live import ROW as LETTER_ROW
from live import Client
from nli_bodies import PAIR, ROW, SHARED

RIGHT = [
    {"pairs": [PAIR]},
    {"input_ids": [[0, 1], [7]]},
    {"text": "a"},
    {"text": ["a", "b"]},
    {"text": "a", "image_data": None},
    {"text": ["a"], "image_data": [None]},
]
WRONG = [
    {},
    {"pairs": []},
    {"pairs": None},
    {"pairs": [{**PAIR, "x": 1}]},
    {"pairs": [{"premise": "a"}]},
    {"pairs": [{"premise": "", "hypothesis": "b"}]},
    {"input_ids": None},
    {"input_ids": [[]]},
    {"input_ids": [[-1]]},
    {"input_ids": [[True]]},
    {"text": None},
    {"text": ""},
    {"text": []},
    {"text": ["a", None]},
    {"text": "a", "pairs": [PAIR]},
    {"text": "a", "image_data": "x"},
    {"text": "a", "image_data": []},
    {"image_data": None},
    {"text": "a", "unknown": 1},
]


@pytest.fixture(scope="session")
def document(both) -> dict[str, Any]:
    client = Client(both)
    found = client.get("/docs.json").json()
    client.close()
    return found


def checker(document: dict[str, Any], path: str, part: str) -> jsonschema.Draft202012Validator:
    operation = document["paths"][path]["post"]
    holder = operation["requestBody"] if part == "body" else operation["responses"][part]
    schema = holder["content"]["application/json"]["schema"]
    whole = {**schema, "components": document["components"]}
    jsonschema.Draft202012Validator.check_schema(whole)
    return jsonschema.Draft202012Validator(whole)


@pytest.mark.parametrize("body", RIGHT)
def test_a_right_body_is_right_by_the_document_and_so_is_its_answer(client, document, body):
    assert checker(document, "/classify", "body").is_valid(body)
    answer = client.post("/classify", json=body)
    assert answer.status_code == 200
    checker(document, "/classify", "200").validate(answer.json())


@pytest.mark.parametrize("body", WRONG)
def test_a_wrong_body_is_wrong_by_the_document_and_so_is_its_refusal(untouched, document, body):
    assert not checker(document, "/classify", "body").is_valid(body)
    answer = untouched.post("/classify", json=body)
    assert answer.status_code == 422
    checker(document, "/classify", "422").validate(answer.json())


@pytest.mark.parametrize(
    ("path", "body"),
    [("/decide", {**ROW, "diagnostics": True, "workload": "hot"}), ("/decide/shared", SHARED)],
)
def test_a_decision_by_entailment_is_as_the_document_says(client, document, path, body):
    checker(document, path, "body").validate(body)
    answer = client.post(path, json=body)
    assert answer.status_code == 200
    checker(document, path, "200").validate(answer.json())


@pytest.mark.parametrize("engine", ["letters", "nli", None, "other"])
def test_the_document_knows_the_two_engines(client, document, engine):
    body = {**LETTER_ROW, "engine": engine}
    is_right = checker(document, "/decide", "body").is_valid(body)
    assert is_right == (client.post("/decide", json=body).status_code == 200)


def test_health_with_both_engines_is_as_the_document_says(client, document):
    checker(document, "/health", "200").validate(client.post("/health").json())


def test_an_absent_engine_is_as_the_document_says(letters, document):
    client = Client(letters)
    answer = client.post("/classify", json={"text": "a"})
    client.close()
    assert answer.status_code == 404
    checker(document, "/classify", "404").validate(answer.json())


def test_the_schema_that_bentomls_clients_read_has_the_route_and_no_null(client):
    routes = {route["name"]: route for route in client.get("/schema.json").json()["routes"]}
    told = routes["classify"]["input"]
    assert list(told["properties"]) == ["pairs", "input_ids", "text", "image_data"]
    assert told["properties"]["pairs"]["type"] == "array"
    assert told["properties"]["input_ids"]["items"]["items"] == {"minimum": 0, "type": "integer"}
    assert [kind["type"] for kind in told["properties"]["text"]["oneOf"]] == ["string", "array"]
    assert "required" not in told
    assert routes["decide"]["input"]["properties"]["engine"]["enum"] == [
        "letters",
        "likelihood",
        "nli",
    ]
