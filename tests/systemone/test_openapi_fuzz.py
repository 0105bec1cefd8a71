"""Requests made up from the served OpenAPI document, right and wrong ones, on every route."""

from collections import Counter
from collections.abc import Iterator

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from live import BEARER, Server
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from systemone_client import MODEL

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
EXAMPLES = 40
BODIES = {"/decide", "/decide/shared", "/classify", "/v1/systemone", "/v1/decisions"}
OPEN_ENDED = {"/v1/models/{model}"}  # no document knows the names of what is loaded
LEAST_RIGHT = 0.8  # of the answers to requests that the document allows
GENERATED = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Both engines, since a request may name either."""
    home = tmp_path_factory.mktemp("both")
    service = "tests.servers.scripted:SemIf"
    started = Server(home, service, SEMIF_NLI_MODEL="package:scripted/nli")
    yield started.wait_until_ready()
    assert started.stop() == 0


@pytest.fixture(scope="module")
def operations(both):
    """Every operation of the document by method and path."""
    document = httpx.get(f"{both.url}/docs.json", headers=BEARER).json()
    schema = schemathesis.openapi.from_dict(document)
    schema.config.update(base_url=both.url)
    found = [result.ok() for result in schema.get_all_operations()]
    return {(operation.method.upper(), operation.path): operation for operation in found}


def repair(body: dict) -> None:
    """Make right what no document can tell: which names are known, and that ids differ."""
    body.pop("workload", None)
    if "model" in body:
        body["model"] = MODEL
    decisions = body.get("decisions", [])
    for things in (decisions, body.get("options", []), *(one["options"] for one in decisions)):
        for index, thing in enumerate(things):
            thing["id"] += str(index)
    questions = body.get("questions")
    for question in questions if isinstance(questions, list) else []:
        for index, choice in enumerate(question.get("choices", [])):
            choice["value"] = str(index)
    if isinstance(body.get("input"), list):
        body["input"] = [item for item in body["input"] if "output" not in item] or "only outputs"


def ask_all(operation, mode) -> Counter[int]:
    statuses: Counter[int] = Counter()

    @GENERATED
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case) -> None:
        case.headers.pop("x-semif-workload", None)
        if mode is schemathesis.GenerationMode.POSITIVE and isinstance(case.body, dict):
            repair(case.body)
        response = case.call(headers=BEARER)
        case.validate_response(response, checks=CHECKS)
        statuses[response.status_code] += 1

    ask()
    return statuses


def test_right_requests_are_answered_on_every_route_as_the_document_says(operations):
    assert {path for _, path in operations} >= BODIES | {"/health", "/v1/models", "/docs"}
    for (_, path), operation in operations.items():
        statuses = ask_all(operation, schemathesis.GenerationMode.POSITIVE)
        if path in BODIES:
            assert statuses[200] >= LEAST_RIGHT * statuses.total(), (path, statuses)
        elif path in OPEN_ENDED:
            assert set(statuses) <= {200, 404}
        else:
            assert set(statuses) == {200}, (path, statuses)


@pytest.mark.parametrize("path", sorted(BODIES))
def test_wrong_requests_are_refused_as_the_document_says(operations, path):
    statuses = ask_all(operations["POST", path], schemathesis.GenerationMode.NEGATIVE)
    refused = sum(count for status, count in statuses.items() if 400 <= status < 500)
    assert refused > statuses.total() / 2
