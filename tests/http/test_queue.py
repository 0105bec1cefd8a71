"""One slot, a bounded queue and a deadline, seen from outside a real server."""

from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

import pytest
from live import ROW, Client, error_of, raw, send_and_leave, together, wait_until


def is_idle(client: Client) -> bool:
    counts = client.counts()
    return counts["calls"] == counts["ended"]


@pytest.fixture(autouse=True)
def idle(client: Client) -> None:
    """Wait until nothing of an earlier test is in the scorer."""
    wait_until(lambda: is_idle(client))


@pytest.fixture
def pool():
    with ThreadPoolExecutor(8) as threads:
        yield threads


@pytest.fixture
def waits(gate, client, pool):
    """A call that runs until the gate is open, from a thread of its own."""
    running = pool.submit(client.decide, state=gate.state)
    gate.wait_for_who_waits()
    yield running
    gate.open()


def test_concurrent_calls_never_overlap_in_the_scorer(client):
    before = client.counts()
    answers = together(client.sleep(0.3), client.sleep(0.3), client.sleep(0.3), gap_s=0)
    assert [answer.status_code for answer in answers] == [200] * 3
    after = client.counts()
    assert after["calls"] == before["calls"] + 3
    assert after["overlaps"] == 0


def test_health_answers_while_a_call_runs(client, gate, waits):
    told = client.counts()  # asks /health
    assert told["calls"] == told["ended"] + 1
    gate.open()
    assert waits.result().status_code == 200
    assert is_idle(client)


def test_a_full_queue_is_429_with_retry_after_and_costs_the_scorer_nothing(client, gate, pool):
    before = client.counts()["calls"]
    calls = [pool.submit(client.decide, state=gate.state) for _ in range(4)]
    (first,), others = wait(calls, return_when=FIRST_COMPLETED)
    refused = first.result()
    gate.open()
    assert error_of(refused) == (429, "overloaded")
    assert 1 <= int(refused.headers["retry-after"]) <= 10
    assert [taken.result().status_code for taken in others] == [200] * 3
    assert client.counts()["calls"] == before + 3


def test_a_timeout_is_504_and_the_next_call_waits_for_the_work_to_end(client, gate, pool):
    before = client.counts()
    assert error_of(client.decide(state=gate.state)) == (504, "timeout")
    assert client.counts()["ended"] == before["ended"]
    asked = pool.submit(client.decide)
    gate.open()
    assert asked.result().status_code == 200
    after = client.counts()
    assert after["ended"] == before["ended"] + 2
    assert after["overlaps"] == 0


def test_a_call_that_times_out_in_the_queue_never_reaches_the_scorer(client, gate, waits):
    before = client.counts()["calls"]
    assert error_of(client.decide()) == (504, "timeout")
    assert error_of(waits.result()) == (504, "timeout")
    gate.open()
    assert client.decide().status_code == 200
    assert client.counts()["calls"] == before + 1


def test_a_client_that_leaves_frees_its_place_in_the_queue(client, gate, waits, pool):
    before = client.counts()["calls"]
    for number in range(2):  # as many as may wait
        send_and_leave(client.server, "/decide", ROW, f"left-place-{number}")
    asked = [pool.submit(client.decide) for _ in range(2)]
    gate.open()
    assert [call.result().status_code for call in (waits, *asked)] == [200] * 3
    assert client.counts()["calls"] == before + 2


def test_a_client_that_leaves_never_frees_the_running_slot(client, gate, pool):
    before = client.counts()
    row = {**ROW, "state": gate.state}
    send_and_leave(client.server, "/decide", row, "left-running", gate.wait_for_who_waits)
    asked = pool.submit(client.decide)
    assert client.counts()["ended"] == before["ended"]
    gate.open()
    assert asked.result().status_code == 200
    after = client.counts()
    assert after["ended"] == before["ended"] + 2
    assert after["overlaps"] == 0
    assert 'code="client_closed",route="/decide"' in client.get("/metrics").text


def test_a_body_that_does_not_arrive_in_time_is_504_and_reaches_no_scorer(client):
    before = client.counts()
    answer = raw(client.server, b"{", declared_bytes=100)
    assert answer.startswith(b"HTTP/1.1 504")
    assert b'"timeout"' in answer
    assert client.counts() == before
