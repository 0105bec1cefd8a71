"""BentoML's own clients, the OpenAPI document and the metrics, against a real server."""

import asyncio
import warnings
from collections.abc import Iterator

import pytest
import yaml
from live import DECISION, ROW, SHARED, TOKEN, Client, Server

from semif_bento.api.openapi import Corrected

with warnings.catch_warnings():
    # On import BentoML uses what pydantic and pathspec have deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    from bentoml import AsyncHTTPClient, SyncHTTPClient
    from bentoml.exceptions import ServiceUnavailable


@pytest.fixture
def bento(server: Server) -> Iterator[SyncHTTPClient]:
    with SyncHTTPClient(server.url, token=TOKEN) as made:
        yield made
    made._temp_dir.cleanup()  # it leaves that to the garbage collector, which warns


def test_the_sync_client_reaches_every_route_by_its_python_name(bento):
    assert bento.health()["status"] == "ok"
    assert bento.decide(**ROW)["option_ids"] == ["y", "n"]
    assert len(bento.decide_shared(**SHARED)["results"]) == 2


@pytest.mark.parametrize("state", ["text", {"k": [1, None, "é"]}, ["a", {"b": 2.5}]])
def test_the_sync_client_sends_a_state_as_it_is(bento, client, state):
    sent = bento.decide(**{**ROW, "state": state})
    assert sent["prompt_sha256"] == client.decide(state=state).json()["prompt_sha256"]


def test_the_async_client_reaches_the_routes(server):
    async def ask() -> tuple[dict, dict]:
        async with AsyncHTTPClient(server.url, token=TOKEN) as client:
            answers = await client.decide(**ROW), await client.decide_shared(**SHARED)
        client._temp_dir.cleanup()
        return answers

    direct, shared = asyncio.run(ask())
    assert direct["id"] == "d"
    assert [result["id"] for result in shared["results"]] == ["d", "e"]


def test_a_client_sees_our_error(bento):
    with pytest.raises(ServiceUnavailable, match="out_of_memory"):
        bento.decide(**{**ROW, "state": {"raise": "out of memory"}})


def test_the_schema_that_clients_read_keeps_every_kind_of_state(client):
    routes = client.get("/schema.json").json()["routes"]
    [decide] = [route for route in routes if route["name"] == "decide"]
    kinds = decide["input"]["properties"]["state"]["oneOf"]
    assert [kind["type"] for kind in kinds] == ["string", "object", "array"]


def test_the_openapi_document_says_what_the_server_does(client):
    document = client.get("/docs.json").json()
    assert document["openapi"].startswith("3.1")
    assert document["security"] == [{"bearer": []}]
    assert set(document["paths"]["/health"]) == {"get", "post"}
    assert document["paths"]["/health"]["get"]["security"] == []
    post = document["paths"]["/decide"]["post"]
    statuses = {"200", "401", "404", "413", "415", "422", "429", "500", "503", "504"}
    assert set(post["responses"]) == statuses
    assert post["requestBody"]["required"] is True
    for reference in _references(document):
        assert reference.removeprefix("#/components/schemas/") in document["components"]["schemas"]


def test_a_bento_gets_the_openapi_document_as_plain_yaml():
    corrected = Corrected({"paths": {}})
    assert yaml.safe_load(yaml.dump(corrected)) == corrected.asdict()


def _references(node: object) -> list[str]:
    if isinstance(node, dict):
        own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
        return own + [found for child in node.values() for found in _references(child)]
    if isinstance(node, list):
        return [found for child in node for found in _references(child)]
    return []


def test_the_metrics_count_calls_tokens_outcomes_and_the_cache(client: Client):
    names = [
        "semif_queue_seconds_count",
        'semif_scorer_seconds_count{engine="letters",mode="direct"}',
        'semif_scorer_seconds_count{engine="letters",mode="shared"}',
        'semif_input_tokens_total{engine="letters",mode="direct"}',
        'semif_input_tokens_total{engine="letters",mode="shared"}',
        'semif_requests_total{code="ok",route="/decide"}',
        'semif_requests_total{code="out_of_memory",route="/decide"}',
        "semif_out_of_memory_total",
        "semif_prefix_cache_hits_total",
        "semif_prefix_cache_misses_total",
    ]
    before = [client.metric(name) for name in names]
    client.decide()
    client.decide(state={"raise": "out of memory"})
    client.post("/decide/shared", json={"state": "s", "decisions": [DECISION]})
    client.post("/decide/shared", json={"state": "s", "decisions": [DECISION]})
    grown = [client.metric(name) - was for name, was in zip(names, before, strict=True)]
    assert grown == [4, 2, 2, 7, 18, 1, 1, 1, 1, 1]
    assert client.metric("semif_reserved_bytes") == 1.5 * 2**30


def test_bentomls_metrics_see_our_statuses(client):
    client.send(b"{")
    text = client.get("/metrics").text
    assert 'endpoint="/decide",http_response_code="422"' in text
    assert 'http_response_code="400"' not in text
