"""POST /decide and /decide/shared with engine nli: what is said, in which order, with what meaning.

`tests/test_entailment.py` holds the arithmetic; here it is what comes out of a real server.
"""

import math

import pytest
from live import DECISION as LETTER_DECISION
from live import ROW as LETTER_ROW
from live import error_of
from nli_bodies import DECISION, ENTAILED, ROW, SHARED, option

from semif_bento.entailment import PAIR_TEMPLATE, Pair, decision_sha256, render_hypothesis

KEYS = ["id", "option_ids", "probabilities", "option_logits", "support", "input_tokens"]
LATER = ["prompt_sha256", "prompt_version", "model", "readout", "probability_status", "engine"]
TRIPLES = [[2.0, 0.0, 0.0], [0.0, 3.0, 1.0], [0.0, 0.0, 0.0]]


def decide(client, **changes):
    answer = client.post("/decide", json={**ROW, **changes})
    assert answer.status_code == 200, answer.text
    return answer.json()


def share(client, **changes):
    answer = client.post("/decide/shared", json={**SHARED, **changes})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_the_keys_are_the_contracts_in_its_order_with_support_after_the_logits(client):
    result = decide(client)
    assert list(result) == [*KEYS, "forward_seconds", "total_seconds", *LATER]
    assert list(result["model"])[-1] == "transformers_version"
    body = share(client)
    assert list(body) == ["results", "timing"]
    for shared in body["results"]:
        assert list(shared) == [*KEYS, *LATER]
        assert list(shared["model"])[-1] == "serving_config"


def test_a_decision_is_the_options_entailment_over_its_sum_unrounded(client):
    result = decide(client)
    assert result["option_ids"] == ["no", "yes", "perhaps"]
    total = math.fsum(ENTAILED)
    assert result["probabilities"] == pytest.approx([e / total for e in ENTAILED], rel=1e-14)
    assert result["option_logits"] == pytest.approx(list(map(math.log, ENTAILED)), rel=1e-14)
    assert result["support"] == pytest.approx(max(ENTAILED), rel=1e-14)
    assert math.fsum(result["probabilities"]) == pytest.approx(1, abs=1e-15)


def test_nothing_entailed_is_uniform_and_has_no_support(client):
    options = [option("a", 2000, 0, 0), option("b", 0, 0, 3000)]
    result = decide(client, options=options)
    assert result["probabilities"] == [0.5, 0.5]
    assert result["support"] == 0
    assert all(math.isfinite(logit) for logit in result["option_logits"])


def test_the_answer_says_what_was_read_and_how(client):
    result = decide(client)
    assert result["readout"].startswith("log-probability of entailment")
    assert "normalized_entailment_v1" in result["probability_status"]
    assert "uncalibrated" in result["probability_status"]
    assert result["prompt_version"] == "nli-hyp-v1/nli-pair-v1"
    pairs = [
        Pair(ROW["state"], render_hypothesis(DECISION["question"], one["id"], one["description"]))
        for one in DECISION["options"]
    ]
    assert result["prompt_sha256"] == decision_sha256(PAIR_TEMPLATE, pairs)
    assert result["model"]["source"] == "scripted-nli"


@pytest.mark.parametrize("diagnostics", [False, True])
def test_the_raw_triples_come_under_diagnostics_alone(client, diagnostics):
    results = [decide(client, diagnostics=diagnostics)]
    results += share(client, diagnostics=diagnostics)["results"]
    if not diagnostics:
        assert all("diagnostics" not in result for result in results)
        assert "pair_logits" not in str(results)
        return
    for result in results:
        assert list(result)[-1] == "diagnostics"
        assert list(result["diagnostics"]) == ["margin", "near_tie", "pair_logits"]
        first, second = sorted(result["probabilities"], reverse=True)[:2]
        assert result["diagnostics"]["margin"] == first - second
    assert results[1]["diagnostics"]["pair_logits"] == TRIPLES
    assert results[2]["diagnostics"]["pair_logits"] == TRIPLES[::-1]


def test_two_options_that_are_entailed_alike_are_a_near_tie(client):
    alike = [option("a", 0, 1, 0), option("b", 0, 1, 0), option("c", 5, 0, 0)]
    assert decide(client, options=alike, diagnostics=True)["diagnostics"]["near_tie"] is True
    assert decide(client, diagnostics=True)["diagnostics"]["near_tie"] is False


def test_shared_decisions_stand_in_request_order_and_equal_direct_ones(client):
    body = share(client)
    direct = decide(client)
    first, second = body["results"]
    assert (first["id"], second["id"]) == ("d", "e")
    for key in ("probabilities", "option_logits", "option_ids", "support", "prompt_sha256"):
        assert first[key] == direct[key]
    assert second["probabilities"] == first["probabilities"][::-1]
    assert second["option_ids"] == first["option_ids"][::-1]


def test_the_timing_keeps_the_contracts_keys(client):
    timing = share(client)["timing"]
    assert list(timing) == [
        *("total_seconds", "encode_seconds", "prefix_tokens", "prefill_seconds"),
        *("replicate_seconds", "suffix_forward_seconds", "batch_size", "true_suffix_tokens"),
        *("padded_suffix_tokens", "branch_groups", "cache_hit"),
    ]
    assert timing["batch_size"] == 2
    assert (timing["prefill_seconds"], timing["suffix_forward_seconds"]) == (0.125, 0.25)
    assert timing["cache_hit"] is True
    result = decide(client)
    assert (result["forward_seconds"], result["total_seconds"]) == (0.375, 0.5)


@pytest.mark.parametrize("workload", ["hot", "cold"])
def test_a_workload_is_the_nli_tables_and_stands_beside_the_native_numbers(client, workload):
    temperature = {"hot": 2.0, "cold": 0.5}[workload]
    plain, asked = decide(client), decide(client, workload=workload)
    view = asked.pop("calibrated")
    assert asked == plain
    weights = [e ** (1 / temperature) for e in ENTAILED]
    expected = [weight / sum(weights) for weight in weights]
    assert view["workload"] == workload
    assert view["temperature"] == temperature
    assert view["probabilities"] == pytest.approx(expected)
    for result in share(client, workload=workload)["results"]:
        native, calibrated = result["probabilities"], result["calibrated"]["probabilities"]
        assert native.index(max(native)) == calibrated.index(max(calibrated))


@pytest.mark.parametrize(
    ("engine", "workload", "known"),
    [
        ("nli", "of letters", "cold, hot"),
        ("nli", "nowhere", "cold, hot"),
        ("letter", "hot", "of letters"),
    ],
)
def test_tables_are_never_mixed(untouched, engine, workload, known):
    row = ROW if engine == "nli" else LETTER_ROW
    answer = untouched.post("/decide", json={**row, "workload": workload})
    assert error_of(answer) == (422, "invalid_request")
    expected = f"The workload is unknown; known workloads: {known}."
    assert answer.json()["error"]["message"] == expected
    decisions = [DECISION if engine == "nli" else LETTER_DECISION]
    shared = {"state": "s", "decisions": decisions, "engine": engine, "workload": workload}
    assert error_of(untouched.post("/decide/shared", json=shared)) == (422, "invalid_request")


def test_each_engine_takes_its_own_workload(client):
    assert client.decide(workload="of letters").json()["calibrated"]["temperature"] == 3.0
    assert decide(client, workload="hot")["calibrated"]["temperature"] == 2.0


def test_too_many_decisions_are_refused_with_counts(untouched):
    decisions = [{**DECISION, "id": str(n), "options": DECISION["options"][:2]} for n in range(4)]
    answer = untouched.post("/decide/shared", json={**SHARED, "decisions": decisions})
    assert error_of(answer) == (422, "invalid_request")
    assert "`decisions` has 4 entries; at most 3 are taken." in answer.text


def test_too_many_options_in_all_are_refused_with_counts(untouched):
    decisions = [{**DECISION, "id": str(n)} for n in range(3)]
    answer = untouched.post("/decide/shared", json={**SHARED, "decisions": decisions})
    assert error_of(answer) == (422, "invalid_request")
    assert answer.json()["error"]["message"] == "The request makes 9 pairs; at most 8 are taken."
    options = [option(str(n), 0, n, 0) for n in range(9)]
    answer = untouched.post("/decide", json={**ROW, "options": options})
    assert error_of(answer) == (422, "invalid_request")


def test_a_state_that_is_no_text_is_read_as_json(client):
    state = {"said": 'it "rained" {here}', "n": [1, 2.5, None, "é"]}
    result = decide(client, state=state)
    premise = '{"said": "it \\"rained\\" {here}", "n": [1, 2.5, null, "é"]}'
    assert result["prompt_sha256"] == decide(client, state=premise)["prompt_sha256"]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("too long", (422, "invalid_request")),
        ("out of memory", (503, "out_of_memory")),
        ("not finite", (500, "scoring_failed")),
        ("unexpected", (500, "scoring_failed")),
    ],
)
@pytest.mark.parametrize("path", ["/decide", "/decide/shared"])
def test_a_failure_keeps_its_status_and_the_server_goes_on(client, path, kind, expected):
    body = {**(ROW if path == "/decide" else SHARED), "state": {"raise": kind}}
    assert error_of(client.post(path, json=body)) == expected
    assert decide(client)["option_ids"] == ["no", "yes", "perhaps"]


def test_an_incomplete_answer_is_500_and_no_decision(client):
    answer = client.post("/decide", json={**ROW, "state": "answer incomplete"})
    assert error_of(answer) == (500, "scoring_failed")
