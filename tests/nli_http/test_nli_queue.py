"""One slot for both engines, and callers who leave, seen from outside a real server."""

import json
import socket
import time
from collections.abc import Callable

import pytest
from live import TOKEN, Client, error_of, together
from nli_bodies import MODEL, PAIR, ROW


def wait_until(holds: Callable[[], bool]) -> None:
    ends_s = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < ends_s
        time.sleep(0.02)


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


def send_and_leave(client: Client, path: str, body: dict, request_id: str, after_s: float) -> None:
    """Send a request and hang up before its answer."""
    content = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: x\r\nX-Request-Id: {request_id}\r\n"
        f"Authorization: Bearer {TOKEN}\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    port = int(client.server.url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(head.encode() + content)
        time.sleep(after_s)


def test_calls_of_both_engines_take_turns_in_one_slot(client):
    before = client.counts()
    started_s = time.monotonic()
    answers = together(classify(client, 0.5), client.sleep(0.5), judge(client, 0.1), gap_s=0)
    assert [answer.status_code for answer in answers] == [200] * 3
    assert time.monotonic() - started_s >= 1.3  # a decision of three options sleeps three times
    after = client.counts()
    assert after["calls"] == before["calls"] + 3
    assert after["overlaps"] == 0


def test_health_answers_while_a_classification_runs(client):
    def ask() -> float:
        started_s = time.monotonic()
        assert client.get("/health").status_code == 200
        return time.monotonic() - started_s

    running, *tries = together(classify(client, 1.5), ask, ask, ask)
    assert running.status_code == 200
    assert min(tries) < 0.1


def test_a_full_queue_is_429_for_either_engine(client):
    before = client.counts()["calls"]
    *taken, refused, also = together(
        classify(client, 1.5),
        client.sleep(0),
        classify(client, 0),
        classify(client, 0),
        judge(client, 0),
    )
    assert [answer.status_code for answer in taken] == [200] * 3
    assert error_of(refused) == error_of(also) == (429, "overloaded")
    assert refused.headers["retry-after"].isdecimal()
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
    send_and_leave(client, path, body, request_id, after_s=0.3)
    assert "status=499 code=client_closed" in client.server.log_line(f"request_id={request_id} ")
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


def test_a_classification_whose_client_left_the_queue_never_runs(client):
    before = client.counts()

    def leave() -> None:
        send_and_leave(client, "/classify", {"pairs": [PAIR]}, "left-the-queue", 0.3)

    running, _ = together(classify(client, 1.2), leave)
    assert running.status_code == 200
    assert "status=499" in client.server.log_line("request_id=left-the-queue ")
    after = client.counts()
    assert (after["calls"], after["left"]) == (before["calls"] + 1, before["left"])
