"""Each engine's own words: what is asked, and every answer that must not be believed."""

import json
import math

import pytest

from semif_bento.errors import EngineFault
from semif_bento.remote import dialect as common
from semif_bento.remote.sglang import SglangDialect
from semif_bento.remote.vllm import VllmDialect

PROMPTS, IDS = [[1, 2], [3]], (11, 12)


def vllm_answer(*rows: dict) -> dict:
    return {
        "choices": [
            {"index": index, "logprobs": {"top_logprobs": [row]}} for index, row in enumerate(rows)
        ]
    }


def sglang_answer(*rows: list) -> list:
    return [{"meta_info": {"output_token_ids_logprobs": [row], "cached_tokens": 5}} for row in rows]


VLLM_ROW = {"token_id:12": -2.0, "token_id:99": -0.1, "token_id:11": -1.0}
SGLANG_ROW = [[-1.0, 11, None], [-2.0, 12, None]]


def vllm(answer: object, prompts: int = 2):
    return VllmDialect().read_scores(json.dumps(answer).encode(), prompts, IDS)


def sglang(answer: object, prompts: int = 2):
    return SglangDialect().read_scores(json.dumps(answer).encode(), prompts, IDS)


def test_vllm_is_asked_for_one_token_and_the_slots_ids():
    ask = VllmDialect().ask_scores("m", PROMPTS, IDS)
    assert ask.path == "/v1/completions"
    assert json.loads(ask.body or b"") == {
        "model": "m",
        "prompt": [[1, 2], [3]],
        "max_tokens": 1,
        "temperature": 0,
        "logprobs": 1,
        "logprob_token_ids": [11, 12],
        "return_tokens_as_token_ids": True,
    }


def test_sglang_is_asked_for_one_token_and_the_slots_ids_of_every_prompt():
    ask = SglangDialect().ask_scores("m", PROMPTS, IDS)
    assert ask.path == "/generate"
    assert json.loads(ask.body or b"") == {
        "input_ids": [[1, 2], [3]],
        "sampling_params": {"max_new_tokens": 1, "temperature": 0},
        "return_logprob": True,
        "logprob_start_len": -1,
        "token_ids_logprob": [11, 12],
    }


def test_vllms_slots_are_found_by_id_beside_the_sampled_token_and_by_index():
    told = vllm_answer(VLLM_ROW, {"token_id:11": -3, "token_id:12": -4.5})
    told["choices"].reverse()
    assert [reading.logprobs for reading in vllm(told)] == [(-1.0, -2.0), (-3.0, -4.5)]


def test_sglangs_slots_are_found_by_id_and_its_cache_is_told():
    first, second = sglang(sglang_answer(SGLANG_ROW, SGLANG_ROW[::-1]))
    assert first.logprobs == second.logprobs == (-1.0, -2.0)
    assert first.cached_tokens == 5


NUMBERS = [
    ("not_finite", math.nan),
    ("not_finite", math.inf),
    ("not_finite", -math.inf),
    ("implausible", -1e30),
    ("implausible", -9999.0),
    ("implausible", 0.5),
    ("malformed", "-1.0"),
    ("malformed", True),
    ("missing_ids", None),
]


@pytest.mark.parametrize(("kind", "value"), NUMBERS)
def test_a_number_that_is_no_log_probability_is_refused(kind, value):
    with pytest.raises(EngineFault) as caught:
        vllm(vllm_answer(VLLM_ROW, {**VLLM_ROW, "token_id:12": value}))
    assert caught.value.kind == kind
    with pytest.raises(EngineFault) as caught:
        sglang(sglang_answer(SGLANG_ROW, [SGLANG_ROW[0], [value, 12, None]]))
    assert caught.value.kind == kind


def test_probabilities_that_sum_to_more_than_one_are_refused():
    with pytest.raises(EngineFault, match="no log-probabilities"):
        vllm(vllm_answer(VLLM_ROW, {"token_id:11": 0.0, "token_id:12": 0.0}))


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        ("wrong_count", vllm_answer(VLLM_ROW)),
        ("wrong_count", vllm_answer(VLLM_ROW, VLLM_ROW, VLLM_ROW)),
        ("wrong_count", {"choices": [vllm_answer(VLLM_ROW)["choices"][0]] * 2}),
        ("wrong_count", {"choices": [{"index": 0, "logprobs": {"top_logprobs": []}}] * 2}),
        ("missing_ids", vllm_answer(VLLM_ROW, {"token_id:11": -1.0})),
        ("malformed", {"choices": [{"index": 0, "logprobs": None}] * 2}),
        ("malformed", {"choices": [{"index": None}] * 2}),
        ("malformed", {"error": {"message": "x"}}),
        ("malformed", []),
    ],
)
def test_a_vllm_answer_of_another_shape_is_refused(kind, answer):
    if kind == "malformed" and isinstance(answer, dict) and "choices" in answer:
        answer["choices"][1] = {**answer["choices"][1], "index": 1}
    with pytest.raises(EngineFault) as caught:
        vllm(answer)
    assert caught.value.kind == kind


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        ("wrong_count", sglang_answer(SGLANG_ROW)),
        ("wrong_count", [{"meta_info": {"output_token_ids_logprobs": []}}] * 2),
        ("missing_ids", sglang_answer(SGLANG_ROW, SGLANG_ROW[:1])),
        ("malformed", [{"meta_info": {}}] * 2),
        ("malformed", sglang_answer([7], [7])),
        ("malformed", {"meta_info": {}}),
    ],
)
def test_an_sglang_answer_of_another_shape_is_refused(kind, answer):
    with pytest.raises(EngineFault) as caught:
        sglang(answer)
    assert caught.value.kind == kind


@pytest.mark.parametrize("answer", [b"", b"{", b"\xff", b"[" * 100_000])
def test_what_is_not_json_is_refused(answer):
    with pytest.raises(EngineFault, match="cannot be read"):
        VllmDialect().read_scores(answer, 1, IDS)


@pytest.mark.parametrize(
    ("read", "answer"),
    [
        (common.read_models, b'{"data": [{"id": 7}]}'),
        (common.read_tokens, b'{"tokens": [1, "2"]}'),
        (common.read_version, b'{"version": "9\\n9"}'),
        (common.read_version, b'{"version": ""}'),
    ],
)
def test_what_a_proof_asks_for_must_be_what_it_is(read, answer):
    with pytest.raises(EngineFault, match="cannot be read"):
        read(answer)


def test_a_model_that_does_not_tell_its_length_is_listed():
    [model] = common.read_models(b'{"data": [{"id": "m", "max_model_len": null}]}')
    assert model == common.ServedModel("m", None)
