"""POST /classify over a real server: its three forms, and what each is answered with."""

import warnings

import pytest
from live import TOKEN
from nli_bodies import PAIR, says, softmax

from semif_bento.entailment import PAIR_TEMPLATE

with warnings.catch_warnings():
    # On import BentoML uses what pydantic and pathspec have deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    from bentoml import SyncHTTPClient

TRIPLES = [(3.0, -1.0, 0.25), (0.0, 2.5, 1.0), (0.1, 0.2, 0.3)]


def ask(client, **body):
    answer = client.post("/classify", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def pairs_of(triples):
    return [{"premise": "It rained.", "hypothesis": says(*logits)} for logits in triples]


def test_the_answer_names_labels_template_and_model_once_in_this_order(client):
    body = ask(client, pairs=[PAIR])
    keys = ["labels", "results", "template", "template_version", "model", "readout", "timing"]
    assert list(body) == keys
    assert body["labels"] == ["contradiction", "entailment", "neutral"]
    assert body["template"] == PAIR_TEMPLATE
    assert body["template_version"] == "nli-pair-v1"
    assert body["readout"] == "logits of a classification head at the last token"
    assert list(body["model"]) == [
        *("source", "revision", "dtype", "device", "torch_version", "transformers_version"),
        "serving_config",
    ]
    assert body["model"]["source"] == "scripted-nli"
    assert list(body["results"][0]) == ["logits", "probabilities", "input_tokens", "tokens_sha256"]
    assert list(body["timing"]) == [
        *("total_seconds", "encode_seconds", "prefill_seconds", "forward_seconds"),
        *("input_tokens", "prefix_tokens", "cached_tokens", "suffix_tokens"),
        *("padded_tokens", "groups"),
    ]


def test_results_stand_in_request_order_with_the_softmax_of_their_logits_unrounded(client):
    results = ask(client, pairs=pairs_of(TRIPLES))["results"]
    assert [tuple(result["logits"]) for result in results] == TRIPLES
    for result, logits in zip(results, TRIPLES, strict=True):
        assert result["probabilities"] == pytest.approx(softmax(logits), rel=1e-15)
        assert sum(result["probabilities"]) == pytest.approx(1, abs=1e-15)


def test_ids_are_answered_as_pairs_are(client):
    body = ask(client, input_ids=[[9, 9, 3, 1, 2], [7, 8, 9]])
    assert [result["logits"] for result in body["results"]] == [[3, 1, 2], [7, 8, 9]]
    assert [result["input_tokens"] for result in body["results"]] == [5, 3]


def test_an_array_of_texts_is_answered_as_sglang_does_with_raw_logits(client):
    texts = [f"Premise: a\nHypothesis: {says(*logits)}" for logits in TRIPLES]
    body = ask(client, text=texts, image_data=None)
    assert body == [
        {"embedding": list(logits), "meta_info": {"prompt_tokens": 7}} for logits in TRIPLES
    ]
    assert [list(one) for one in body] == [["embedding", "meta_info"]] * 3


@pytest.mark.parametrize("images", [{}, {"image_data": None}, {"image_data": [None]}])
def test_one_text_is_answered_by_an_object_and_an_array_of_one_by_an_array(client, images):
    text = says(1, 2, 3)
    one = {"embedding": [1.0, 2.0, 3.0], "meta_info": {"prompt_tokens": 4}}
    assert ask(client, text=text, **images) == one
    assert ask(client, text=[text], **images) == [one]


def test_sglangs_answer_is_json_with_a_request_id_as_every_other(client):
    answer = client.post("/classify", json={"text": "a"}, headers={"X-Request-Id": "sg-1"})
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-request-id"] == "sg-1"
    assert "code=ok" in client.server.log_line("request_id=sg-1 ")


def test_equal_pairs_are_each_answered(client):
    results = ask(client, pairs=[PAIR, PAIR, PAIR])["results"]
    assert results[0] == results[1] == results[2]


def test_as_many_inputs_as_the_limit_are_taken(client):
    assert len(ask(client, pairs=[PAIR] * 8)["results"]) == 8
    assert len(ask(client, text=["a"] * 8)) == 8


@pytest.mark.parametrize("text", ["{premise} {0} {}", '"quoted"', "中文 🙂", "<|im_end|>", " \n"])
def test_any_text_is_taken(client, text):
    ask(client, pairs=[{"premise": text, "hypothesis": text}])
    ask(client, text=[text])


def test_bentomls_client_asks_for_pairs_ids_and_decisions(both):
    with SyncHTTPClient(both.url, token=TOKEN) as bento:
        answered = bento.classify(pairs=pairs_of(TRIPLES))
        by_ids = bento.classify(input_ids=[[3, 1, 2]])
        decided = bento.decide(
            id="d",
            state="s",
            question="?",
            options=[{"id": "a", "description": "x"}, {"id": "b", "description": "y"}],
            engine="nli",
        )
    bento._temp_dir.cleanup()
    assert [tuple(result["logits"]) for result in answered["results"]] == TRIPLES
    assert by_ids["results"][0]["logits"] == [3.0, 1.0, 2.0]
    assert decided["model"]["source"] == "scripted-nli"


def test_bentomls_client_asks_as_sglangs_does(both):
    with SyncHTTPClient(both.url, token=TOKEN) as bento:
        answered = bento.classify(text=[says(1, 2, 3)])
    bento._temp_dir.cleanup()
    assert answered[0]["embedding"] == [1.0, 2.0, 3.0]


def test_the_metrics_count_a_classification(client):
    names = [
        'semif_scorer_seconds_count{engine="nli",mode="classify"}',
        'semif_input_tokens_total{engine="nli",mode="classify"}',
        'semif_requests_total{code="ok",route="/classify"}',
    ]
    before = [client.metric(name) for name in names]
    ask(client, pairs=[PAIR])
    ask(client, text="a")
    grown = [client.metric(name) - was for name, was in zip(names, before, strict=True)]
    assert grown == [2, 18, 2]
