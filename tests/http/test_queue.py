"""One slot, a bounded queue and a deadline, seen from outside a real server."""

import json
import time
from collections.abc import Callable

import httpx
import pytest
from live import ROW, Client, error_of, raw, together


def wait_until(holds: Callable[[], bool]) -> None:
    ends_s = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < ends_s
        time.sleep(0.02)


def is_idle(client: Client) -> bool:
    counts = client.counts()
    return counts["calls"] == counts["ended"]


@pytest.fixture(autouse=True)
def idle(client: Client) -> None:
    """Wait until nothing of an earlier test is in the scorer."""
    wait_until(lambda: is_idle(client))


def send_and_leave(client: Client, seconds: float) -> None:
    body = json.dumps({**ROW, "state": {"sleep": seconds}}).encode()
    raw(client.server, body, len(body), hang_up=True)


def test_concurrent_calls_never_overlap_in_the_scorer(client):
    before = client.counts()
    started_s = time.monotonic()
    answers = together(client.sleep(0.5), client.sleep(0.5), client.sleep(0.5), gap_s=0)
    assert [answer.status_code for answer in answers] == [200] * 3
    assert time.monotonic() - started_s >= 1.5
    after = client.counts()
    assert after["calls"] == before["calls"] + 3
    assert after["overlaps"] == 0


def test_health_answers_within_100_ms_while_a_slow_call_runs(client):
    def ask() -> float:
        started_s = time.monotonic()
        assert httpx.get(f"{client.server.url}/health").status_code == 200
        return time.monotonic() - started_s

    running, *tries = together(client.sleep(1.5), ask, ask, ask, ask, ask)
    assert running.status_code == 200
    assert min(tries) < 0.1


def test_a_full_queue_is_429_with_retry_after_and_costs_the_scorer_nothing(client):
    before = client.counts()["calls"]
    *taken, refused = together(client.sleep(1.2), *[client.sleep(0)] * 3)
    assert [answer.status_code for answer in taken] == [200] * 3
    assert error_of(refused) == (429, "overloaded")
    assert 1 <= int(refused.headers["retry-after"]) <= 10
    assert client.counts()["calls"] == before + 3


def test_a_timeout_is_504_and_the_next_call_waits_for_the_work_to_end(client):
    before = client.counts()
    assert error_of(client.sleep(4)()) == (504, "timeout")
    assert client.counts()["ended"] == before["ended"]
    assert client.decide().status_code == 200
    after = client.counts()
    assert after["ended"] == before["ended"] + 2
    assert after["overlaps"] == 0


def test_a_call_that_times_out_in_the_queue_never_reaches_the_scorer(client):
    before = client.counts()["calls"]
    running, waiting = together(client.sleep(3.5), client.sleep(0))
    assert error_of(running) == error_of(waiting) == (504, "timeout")
    assert client.decide().status_code == 200
    assert client.counts()["calls"] == before + 2


def test_a_client_that_leaves_frees_its_place_in_the_queue(client):
    before = client.counts()["calls"]

    def leave_twice_then_ask() -> httpx.Response:
        for _ in range(2):
            send_and_leave(client, 0)
        return client.decide()

    running, asked = together(client.sleep(1.5), leave_twice_then_ask)
    assert running.status_code == asked.status_code == 200
    assert client.counts()["calls"] == before + 2


def test_a_client_that_leaves_never_frees_the_running_slot(client):
    before = client.counts()
    send_and_leave(client, 1.5)
    wait_until(lambda: client.counts()["calls"] == before["calls"] + 1)
    assert client.decide().status_code == 200
    after = client.counts()
    assert after["ended"] == before["ended"] + 2
    assert after["overlaps"] == 0
    assert 'code="client_closed",route="/decide"' in client.get("/metrics").text


def test_a_body_that_does_not_arrive_in_time_is_504_and_reaches_no_scorer(client):
    before = client.counts()
    started_s = time.monotonic()
    answer = raw(client.server, b"{", declared_bytes=100)
    assert answer.startswith(b"HTTP/1.1 504")
    assert b'"timeout"' in answer
    assert 3 <= time.monotonic() - started_s < 7
    assert client.counts() == before
