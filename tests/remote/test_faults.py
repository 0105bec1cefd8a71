"""Every way in which an engine breaks: what the caller gets, and who is asked next."""

import json
import logging
import math
import threading

import pytest
from asking import decide, decide_shared, eventually, request_about, servers
from scripted_engine import KEY, Answer

from semif_bento.caller import Caller
from semif_bento.errors import (
    ClientClosed,
    EngineFault,
    InvalidRequest,
    Overloaded,
    PromptTooLong,
    ScoringTimeout,
)


def asked(engines) -> list[int]:
    return [len(engine.calls) for engine in engines]


def home_of(engines, backend, state: object = "a state"):
    """The engine that a state's prefix goes to, and the other one."""
    before = asked(engines)
    decide(backend, state)
    [home] = [e for e, n in zip(engines, before, strict=True) if len(e.calls) > n]
    return home, next(engine for engine in engines if engine is not home)


def states_of(engines, backend, count: int = 4) -> dict[str, list[str]]:
    """So many states for each engine, by its name."""
    found: dict[str, list[str]] = {engine.name: [] for engine in engines}
    for index in range(200):
        state = f"state {index}"
        found[home_of(engines, backend, state)[0].name].append(state)
        if all(len(states) >= count for states in found.values()):
            return found
    raise AssertionError("hashing sends everything to one server")


def edit_first_slot(value: object):
    """Put a value in the place of the first slot's log-probability of the last prompt."""

    def spoil(told):
        if isinstance(told, dict):
            row = told["choices"][0]["logprobs"]["top_logprobs"][0]
            row[next(iter(row))] = value
        else:
            told[-1]["meta_info"]["output_token_ids_logprobs"][0][0][0] = value
        return told

    return spoil


def drop_an_id(told):
    if isinstance(told, dict):
        row = told["choices"][0]["logprobs"]["top_logprobs"][0]
        del row[next(iter(row))]
    else:
        del told[-1]["meta_info"]["output_token_ids_logprobs"][0][0]
    return told


def drop_an_answer(told):
    return {"choices": told["choices"][1:]} if isinstance(told, dict) else told[1:]


BELIEVED_BY_NOBODY = [
    ("not_finite", edit_first_slot(math.nan)),
    ("implausible", edit_first_slot(-1e30)),
    ("missing_ids", drop_an_id),
    ("wrong_count", drop_an_answer),
    ("malformed", lambda told: {"error": "no"}),
]


@pytest.mark.parametrize(("kind", "spoil"), BELIEVED_BY_NOBODY, ids=lambda x: str(x)[:12])
def test_an_answer_that_must_not_be_believed_fails_its_request_and_no_other_server_is_asked(
    engines, gateway, kind, spoil
):
    backend = gateway(*engines, backend_check_s=60.0)
    home, other = home_of(engines, backend)
    home.spoil, before = spoil, len(other.calls)
    with pytest.raises(EngineFault) as caught:
        decide_shared(backend)
    assert (caught.value.status, caught.value.code, caught.value.kind) == (
        500,
        "scoring_failed",
        kind,
    )
    assert len(other.calls) == before
    home.spoil = None
    decide_shared(backend)  # one bad answer ejects nobody


def test_a_server_that_goes_on_giving_such_answers_is_ejected_and_the_other_answers(
    engines, gateway
):
    backend = gateway(*engines)
    home, _ = home_of(engines, backend)
    home.spoil = edit_first_slot(math.nan)
    with pytest.raises(EngineFault):
        decide(backend)
    eventually(lambda: not all(server.is_ready for server in servers(backend)))
    decide(backend)
    home.spoil = None
    eventually(lambda: all(server.is_ready for server in servers(backend)))


def test_a_refused_request_is_the_engines_fault_and_is_asked_nowhere_else(engines, gateway):
    backend = gateway(*engines)
    home, other = home_of(engines, backend)
    before = len(other.calls)
    out_of_range = {"error": {"message": "Out of range float values are not JSON compliant"}}
    home.refuse = Answer(400, json.dumps(out_of_range).encode())
    with pytest.raises(EngineFault, match=r"refused a request \(400\)") as caught:
        decide(backend)
    assert caught.value.kind == "refused"
    assert len(other.calls) == before


@pytest.mark.parametrize(("status", "header", "wait_s"), [
    (503, {}, 1), (503, {"Retry-After": "4"}, 4), (429, {"Retry-After": "9999"}, 10),
    (503, {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, 1),
])  # fmt: skip
def test_an_engine_whose_queue_is_full_is_a_429_with_retry_after(
    engines, gateway, status, header, wait_s
):
    backend = gateway(*engines)
    home, other = home_of(engines, backend)
    before = len(other.calls)
    home.refuse = Answer(status, b"{}", header)
    with pytest.raises(Overloaded) as caught:
        decide(backend)
    assert (caught.value.status, caught.value.retry_after_s) == (429, wait_s)
    assert len(other.calls) == before
    assert all(server.is_ready for server in servers(backend))


def test_a_server_that_refuses_connections_is_passed_over_at_once_and_returns(engines, gateway):
    backend = gateway(*engines)
    home, other = home_of(engines, backend)
    home.stop()
    outcome = decide(backend)
    assert other.calls
    assert outcome.scores.probabilities == decide(backend).scores.probabilities
    [status] = [server for server in servers(backend) if server.name == home.name]
    assert (status.is_ready, status.ejections) == (False, 1)
    home.start()
    eventually(lambda: all(server.is_ready for server in servers(backend)))
    before = len(home.calls)
    decide(backend)
    assert len(home.calls) == before + 1


def test_a_connection_that_ends_before_the_answer_is_retried_once_elsewhere(engines, gateway):
    backend = gateway(*engines, backend_check_s=60.0)
    home, other = home_of(engines, backend)
    home.hang_up = True
    before = asked((home, other))
    decide(backend)
    assert asked((home, other)) == [before[0] + 1, before[1] + 1]


def test_a_server_killed_in_the_middle_of_its_calls_loses_none_of_them(engines, gateway):
    backend = gateway(*engines)
    home, _ = home_of(engines, backend)
    home.delay_s = 300.0
    outcomes: list[object] = []
    threads = [threading.Thread(target=lambda: outcomes.append(decide(backend))) for _ in range(4)]
    for thread in threads:
        thread.start()
    eventually(lambda: home.running == 4)
    home.stop()
    for thread in threads:
        thread.join(30)
    assert len(outcomes) == 4


@pytest.mark.parametrize("status", [500, 502, 504])
def test_a_failed_server_is_retried_once_elsewhere_and_proven_before_it_is_ejected(
    engines, gateway, status
):
    backend = gateway(*engines)
    home, other = home_of(engines, backend)
    home.refuse = Answer(status, b"Internal Server Error")
    before = len(other.calls)
    decide(backend)
    assert len(other.calls) == before + 1
    eventually(lambda: not all(server.is_ready for server in servers(backend)))
    home.refuse = None
    eventually(lambda: all(server.is_ready for server in servers(backend)))


def test_when_both_fail_the_caller_is_told_and_nobody_is_asked_a_second_time(engines, gateway):
    backend = gateway(*engines, backend_check_s=60.0)
    for engine in engines:
        engine.hang_up = True
    before = asked(engines)
    with pytest.raises(EngineFault) as caught:
        decide(backend)
    assert (caught.value.status, caught.value.retry_after_s) == (500, 1)
    assert asked(engines) == [count + 1 for count in before]
    with pytest.raises(EngineFault, match="No engine server can be reached") as caught:
        decide(backend)
    assert caught.value.kind == "no_server"
    assert asked(engines) == [count + 1 for count in before]


def test_a_slow_engine_is_a_504_its_connection_is_closed_and_nobody_else_is_asked(engines, gateway):
    backend = gateway(*engines, backend_timeout_s=1.0)
    home, other = home_of(engines, backend)
    home.delay_s, before, given_up = 300.0, len(other.calls), home.given_up
    with pytest.raises(ScoringTimeout):
        decide(backend)
    eventually(lambda: home.given_up > given_up)  # it would still compute
    assert home.running == 0
    assert len(other.calls) == before


def test_a_caller_who_leaves_closes_the_engines_connection(engines, gateway):
    backend = gateway(*engines)
    home, _ = home_of(engines, backend)
    home.delay_s, given_up = 300.0, home.given_up
    caller, outcome = Caller(), []

    def ask():
        try:
            backend.engines["letters"].direct(request_about("a state"), caller)
        except ClientClosed as error:
            outcome.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    eventually(lambda: home.running == 1)
    caller.leave()
    thread.join(30)
    assert outcome
    eventually(lambda: home.given_up > given_up)  # it would still compute
    assert home.running == 0
    eventually(lambda: all(server.running == 0 for server in servers(backend)))
    assert all(server.is_ready for server in servers(backend))


def test_health_checks_eject_a_server_that_nobody_asks_and_bring_it_back(engines, gateway):
    backend = gateway(*engines)
    engines[0].health = 503
    eventually(lambda: not servers(backend)[0].is_ready)
    engines[0].health = 200
    eventually(lambda: servers(backend)[0].is_ready)


def test_a_server_that_comes_back_as_another_stays_out(engines, gateway, caplog):
    backend = gateway(*engines)
    first = engines[0]
    first.stop()
    eventually(lambda: not servers(backend)[0].is_ready)
    first.compute = lambda prompts, ids: [[-9.0 - i / 100 for i in range(len(ids))]] * len(prompts)
    first.start()
    checks = first.checks
    eventually(lambda: first.checks > checks + 2)
    assert not servers(backend)[0].is_ready


def test_equal_states_stay_on_one_server_and_different_ones_use_both(engines, gateway):
    backend = gateway(*engines)
    by_server = states_of(engines, backend)
    for engine in engines:
        before = len(engine.calls)
        for state in by_server[engine.name]:
            decide(backend, state)
            decide_shared(backend, state)
        assert len(engine.calls) == before + 2 * len(by_server[engine.name])


def test_a_lost_server_moves_only_its_own_states(engines, gateway):
    backend = gateway(*engines)
    by_server = states_of(engines, backend)
    lost, kept = engines
    lost.stop()
    for state in by_server[kept.name]:
        before = len(kept.calls)
        decide(backend, state)
        assert len(kept.calls) == before + 1


def test_a_states_decisions_travel_in_one_call(engines, gateway):
    backend = gateway(*engines)
    before = sum(asked(engines))
    outcome = decide_shared(backend, decisions=21)
    assert sum(asked(engines)) == before + 1
    assert outcome.timing.branch_groups == 1
    assert [scores.decision_id for scores in outcome.scores] == [f"d{n}" for n in range(21)]
    call = max((engine.calls[-1] for engine in engines), key=lambda call: len(str(call)))
    assert len(call.get("prompt") or call["input_ids"]) == 21


def test_a_state_that_is_worth_it_is_sent_alone_first_and_to_the_same_server(engines, gateway):
    backend = gateway(*engines, backend_prime_tokens=500)
    home, other = home_of(engines, backend, "x" * 400)
    before = asked((home, other))
    outcome = decide_shared(backend, "x" * 400)
    assert asked((home, other)) == [before[0] + 2, before[1]]
    first, second = (call.get("prompt") or call["input_ids"] for call in home.calls[-2:])
    assert len(first) == 1
    assert all(prompt[: len(first[0])] == first[0] for prompt in second)
    assert len(first[0]) == outcome.timing.prefix_tokens
    assert (outcome.timing.branch_groups, outcome.timing.prefill_seconds > 0) == (2, True)


def test_a_short_state_or_a_lone_decision_is_not_sent_twice(engines, gateway):
    backend = gateway(*engines, backend_prime_tokens=500)
    before = sum(asked(engines))
    decide_shared(backend, "short")
    decide_shared(backend, "x" * 400, decisions=1)
    decide(backend, "x" * 400)
    assert sum(asked(engines)) == before + 3


def test_a_server_is_never_asked_more_at_once_than_its_places(engines, gateway):
    backend = gateway(*engines, backend_concurrency=2)
    assert backend.slots == 4
    for engine in engines:
        engine.delay_s, engine.most_running = 0.1, 0
    threads = [threading.Thread(target=decide, args=(backend, f"s{n}")) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert all(0 < engine.most_running <= 2 for engine in engines)


def test_a_busy_server_lets_another_answer_for_it(engines, gateway):
    backend = gateway(*engines, backend_concurrency=1)
    home, other = home_of(engines, backend)
    home.delay_s = 300.0
    slow = threading.Thread(target=decide, args=(backend,))
    slow.start()
    eventually(lambda: home.running == 1)
    before = len(other.calls)
    decide(backend)
    assert len(other.calls) == before + 1
    assert home.running == 1
    home.delay_s = 0.0
    slow.join(30)
    assert not slow.is_alive()


@pytest.mark.parametrize(("state", "error"), [
    ("x" * 5000, PromptTooLong), ("\ud800", InvalidRequest), ("fits", InvalidRequest),
])  # fmt: skip
def test_a_callers_fault_is_refused_before_any_server_is_asked(engines, gateway, state, error):
    backend = gateway(*engines)
    before = asked(engines)
    options = 200 if state == "fits" else 2  # the byte tokenizer has 26 slots
    with pytest.raises(error):
        decide(backend, state, options=options)
    assert asked(engines) == before


def test_nothing_of_a_request_or_key_is_logged_or_told(engines, gateway, caplog):
    caplog.set_level(logging.DEBUG)
    for engine in engines:
        engine.key = KEY
    backend = gateway(*engines, backend_key=KEY)
    home, other = home_of(engines, backend, "a very private state")
    home.hang_up = True
    other.refuse = Answer(500, b"a very private state")
    with pytest.raises(EngineFault) as caught:
        decide(backend, "a very private state")
    eventually(lambda: not any(server.is_ready for server in servers(backend)))
    told = caplog.text + caught.value.message + repr(backend.status()) + repr(backend.identity)
    for secret in (KEY, "private", "Bearer"):
        assert secret not in told


def test_closing_leaves_no_thread(engines, gateway):
    before = set(threading.enumerate())
    backend = gateway(*engines)
    begun = set(threading.enumerate()) - before
    assert [thread.name for thread in begun] == ["engine-calls"]
    gateway.close(backend)
    assert set(threading.enumerate()) <= before
