"""What a right request is answered with, from a real server."""

import httpx
from live import SHARED


def test_a_direct_answer_has_the_contracts_keys_in_their_order(client):
    answer = client.decide()
    assert answer.status_code == 200
    assert list(answer.json()) == [
        "id",
        "option_ids",
        "probabilities",
        "option_logits",
        "input_tokens",
        "forward_seconds",
        "total_seconds",
        "prompt_sha256",
        "prompt_version",
        "model",
        "readout",
        "probability_status",
        "engine",
    ]
    assert list(answer.json()["model"]) == [
        "source",
        "revision",
        "dtype",
        "device",
        "torch_version",
        "transformers_version",
    ]


def test_a_shared_answer_has_the_contracts_keys_in_their_order(client):
    answer = client.post("/decide/shared", json=SHARED).json()
    assert list(answer) == ["results", "timing"]
    assert [result["id"] for result in answer["results"]] == ["d", "e"]
    assert list(answer["results"][0]) == [
        "id",
        "option_ids",
        "probabilities",
        "option_logits",
        "input_tokens",
        "prompt_sha256",
        "prompt_version",
        "model",
        "readout",
        "probability_status",
        "engine",
    ]
    assert list(answer["results"][0]["model"])[-1] == "serving_config"
    assert list(answer["timing"]) == [
        "total_seconds",
        "encode_seconds",
        "prefix_tokens",
        "prefill_seconds",
        "replicate_seconds",
        "suffix_forward_seconds",
        "batch_size",
        "true_suffix_tokens",
        "padded_suffix_tokens",
        "branch_groups",
        "cache_hit",
    ]


def test_health_has_the_contracts_keys_in_their_order_and_no_null(client):
    health = httpx.get(f"{client.server.url}/health").json()
    assert list(health)[:7] == (
        [
            "status",
            "semif_commit",
            "model",
            "vram_cap_gib",
            "max_tokens",
            "max_decisions",
            "workloads",
        ]
    )
    assert health["workloads"] == ["cold", "hot"]
    assert None not in health.values()


def test_a_workload_adds_a_calibrated_view_and_leaves_the_native_numbers(client):
    native, hot = client.decide().json(), client.decide(workload="hot").json()
    assert hot.pop("calibrated")["temperature"] == 2.0
    assert hot == native


def test_diagnostics_come_when_asked_for_and_only_then(client):
    assert "diagnostics" not in client.decide(diagnostics=False).json()
    asked = client.decide(diagnostics=True).json()["diagnostics"]
    assert list(asked) == ["letter_mass", "margin", "near_tie"]


def test_the_server_keeps_nothing_of_an_answered_call(client):
    worker = client.server.worker()

    def grow(calls: int) -> float:
        before = worker.memory_info().rss
        for _ in range(calls):
            assert client.decide().status_code == 200
        return (worker.memory_info().rss - before) / calls

    grow(300)
    assert grow(700) < 2048  # bytes a call; BentoML's timer alone would be 7000
