"""One slot for both engines, and callers who leave, seen from outside a real server."""

import json
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

import pytest
from live import Client, error_of, send_and_leave, together, wait_until
from nli_bodies import MODEL, PAIR, ROW


@pytest.fixture(autouse=True)
def idle(client: Client) -> None:
    """Wait until nothing of an earlier test is in an engine."""

    def is_idle() -> bool:
        counts = client.counts()
        return counts["calls"] == counts["ended"]

    wait_until(is_idle)


def classify(client: Client, seconds: float) -> Callable:
    asked = {"premise": f"sleep {seconds}", "hypothesis": "h"}
    return lambda: client.post("/classify", json={"pairs": [asked]})


def judge(client: Client, seconds: float) -> Callable:
    return lambda: client.post("/decide", json={**ROW, "state": {"sleep": seconds}})


def gated(client: Client, gate) -> list[Callable]:
    """A call of each kind that lasts until the gate is open."""
    pairs = [{**PAIR, "premise": gate.premise}]
    return [
        lambda: client.post("/classify", json={"pairs": pairs}),
        lambda: client.decide(state=gate.state),
        lambda: client.post("/decide", json={**ROW, "state": gate.state}),
    ]


@pytest.fixture
def pool():
    with ThreadPoolExecutor(8) as threads:
        yield threads


def test_calls_of_both_engines_take_turns_in_one_slot(client):
    before = client.counts()
    answers = together(classify(client, 0.5), client.sleep(0.5), judge(client, 0.1), gap_s=0)
    assert [answer.status_code for answer in answers] == [200] * 3
    after = client.counts()
    assert after["calls"] == before["calls"] + 3
    assert after["overlaps"] == 0


def test_health_answers_while_a_classification_runs(client, gate, pool):
    classification, *_ = gated(client, gate)
    running = pool.submit(classification)
    gate.wait_for_who_waits()
    told = client.counts()  # asks /health
    assert told["calls"] == told["ended"] + 1
    gate.open()
    assert running.result().status_code == 200


def test_a_full_queue_is_429_for_either_engine(client, gate, pool):
    """One call runs and two wait, whichever; of six calls three are refused."""
    before = client.counts()["calls"]
    waiting = [pool.submit(call) for call in gated(client, gate)]
    gate.wait_for_who_waits()
    waiting += [pool.submit(call) for call in gated(client, gate)]
    refused = set()
    while len(refused) < 3:
        done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
        refused |= done
    gate.open()
    for call in refused:
        assert error_of(call.result()) == (429, "overloaded")
        assert call.result().headers["retry-after"].isdecimal()
    assert [call.result().status_code for call in waiting] == [200] * 3
    assert client.counts()["calls"] == before + 3


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/classify", {"pairs": [{"premise": "sleep 30", "hypothesis": "h"}]}),
        ("/classify", {"text": "sleep 30"}),
        ("/decide", {**ROW, "state": {"sleep": 30}}),
        (
            "/v1/systemone",
            {
                "model": MODEL,
                "state": {"sleep": 30},
                "questions": {"q": {"type": "noul", "instructions": "?"}},
            },
        ),
    ],
)
def test_a_client_that_leaves_is_499_and_the_classifier_is_told(client, path, body):
    before = client.counts()
    request_id = f"leaves{path.replace('/', '-')}-{len(json.dumps(body))}"

    def runs() -> None:
        wait_until(lambda: client.counts()["calls"] == before["calls"] + 1)

    send_and_leave(client.server, path, body, request_id, when=runs)
    wait_until(lambda: client.counts()["ended"] == before["ended"] + 1)  # not 30 s later
    assert client.counts()["left"] == before["left"] + 1
    assert f'code="client_closed",route="{path}"' in client.get("/metrics").text
    assert client.post("/classify", json={"pairs": [PAIR]}).status_code == 200


def test_a_caller_who_times_out_is_504_and_the_classifier_is_told(client):
    before = client.counts()
    assert error_of(classify(client, 30)()) == (504, "timeout")
    assert client.decide().status_code == 200
    after = client.counts()
    assert after["left"] == before["left"] + 1
    assert after["ended"] == before["ended"] + 2
    assert after["overlaps"] == 0


def test_a_classification_whose_client_left_the_queue_never_runs(client, gate, pool):
    before = client.counts()
    classification, *_ = gated(client, gate)
    running = pool.submit(classification)
    gate.wait_for_who_waits()
    send_and_leave(client.server, "/classify", {"pairs": [PAIR]}, "left-the-queue")
    gate.open()
    assert running.result().status_code == 200
    after = client.counts()
    assert (after["calls"], after["left"]) == (before["calls"] + 1, before["left"])
