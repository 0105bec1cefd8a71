"""The NLI routes over a real, tiny checkpoint without the letter engine."""

import array
import gc
import hashlib
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typesafe_sdk as sdk
from live import TOKEN, Client, Server, error_of
from nli_bodies import NO_LETTERS, softmax
from nli_servers import running

from semif_bento.cli.main import main

STATE = "The shop opens at nine. It closes at six, except on Sundays, when it stays shut all day."
QUESTION = "Is the shop open on Sunday afternoon?"
OPTIONS = [
    {"id": "open", "description": "It is open."},
    {"id": "shut", "description": "It is shut."},
    {"id": "unknown", "description": "The evidence does not tell."},
    {"id": "partly", "description": "Only a part of it is open."},
]
ROW = {"id": "d", "state": STATE, "question": QUESTION, "options": OPTIONS, "engine": "nli"}
PAIRS = [
    {"premise": STATE, "hypothesis": "The shop is shut on Sundays."},
    {"premise": "It rained.", "hypothesis": '中文 {premise} "quoted" <|im_end|>'},
    {"premise": f" {STATE}\n", "hypothesis": "The shop opens at six."},
    {"premise": STATE, "hypothesis": "The shop is shut on Sundays. Always."},
]


@pytest.fixture(scope="module")
def checkpoint() -> Path:
    from models.nli import shared_nli_model

    return shared_nli_model()


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory, checkpoint: Path) -> Iterator[Server]:
    with running(
        tmp_path_factory.mktemp("real"),
        service="service:SemIf",
        **NO_LETTERS,
        SEMIF_NLI_MODEL=str(checkpoint),
        SEMIF_NLI_REVISION="r1",
        SEMIF_NLI_DTYPE="float32",
        SEMIF_MAX_TOKENS="512",
        SEMIF_MAX_PAIRS="64",
    ) as started:
        yield started


@pytest.fixture
def client(real: Server) -> Iterator[Client]:
    made = Client(real)
    yield made
    made.close()


def classify(client: Client, **body: Any) -> Any:
    answer = client.post("/classify", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def decide(client: Client, **changes: Any) -> dict[str, Any]:
    answer = client.post("/decide", json={**ROW, **changes})
    assert answer.status_code == 200, answer.text
    return answer.json()


def reached(client: Client) -> list[float]:
    """What moves when anything is run: the cache's figures, and tokens answered for."""
    cache = client.get("/health").json()["prefix_cache"]
    tokens = client.metric('semif_input_tokens_total{engine="nli",mode="classify"}')
    return [cache["hits"], cache["misses"], cache["entries"], tokens]


def test_pairs_texts_and_ids_of_one_input_are_answered_with_the_same_bits(client, qwen_tokenizer):
    texts = [
        f"Premise: {pair['premise'].strip()}\nHypothesis: {pair['hypothesis']}" for pair in PAIRS
    ]
    results = classify(client, pairs=PAIRS)["results"]
    plain = [0, 2, 3]  # without what looks like a special token
    ids = [qwen_tokenizer(texts[place]).input_ids for place in plain]
    by_ids = classify(client, input_ids=ids)["results"]
    by_text = classify(client, text=texts)
    assert [one["embedding"] for one in by_text] == [one["logits"] for one in results]
    assert [one["meta_info"]["prompt_tokens"] for one in by_text] == [
        one["input_tokens"] for one in results
    ]
    for given, place, found in zip(ids, plain, by_ids, strict=True):
        assert found["tokens_sha256"] == results[place]["tokens_sha256"]
        digest = hashlib.sha256(array.array("I", given).tobytes()).hexdigest()
        assert found["tokens_sha256"] == digest
        assert found["logits"] == pytest.approx(results[place]["logits"], abs=1e-4)


def test_results_keep_the_order_of_the_request(client):
    results = classify(client, pairs=PAIRS)["results"]
    for order in ([3, 2, 1, 0], [1, 3, 0, 2], [0, 0, 2, 1]):
        again = classify(client, pairs=[PAIRS[place] for place in order])["results"]
        hashes = [results[place]["tokens_sha256"] for place in order]
        assert [one["tokens_sha256"] for one in again] == hashes
    for result in results:
        assert result["probabilities"] == pytest.approx(softmax(result["logits"]))


def test_the_same_request_gives_the_same_bits_whatever_ran_in_between(client):
    first, decided = classify(client, pairs=PAIRS)["results"], decide(client)
    classify(client, pairs=PAIRS[:2])
    classify(client, pairs=PAIRS[2:])
    decide(client, options=OPTIONS[:2])
    decide(client, question="Something else entirely?")
    assert classify(client, pairs=PAIRS)["results"] == first
    again = decide(client)
    for key in ("option_logits", "probabilities", "support", "prompt_sha256", "input_tokens"):
        assert again[key] == decided[key]


def test_the_order_of_options_moves_no_probability(client):
    found = decide(client)
    shares = dict(zip(found["option_ids"], found["probabilities"], strict=True))
    assert math.fsum(shares.values()) == pytest.approx(1, abs=1e-12)
    for options in (OPTIONS[::-1], [OPTIONS[place] for place in (2, 0, 3, 1)]):
        other = decide(client, options=options)
        for name, share in zip(other["option_ids"], other["probabilities"], strict=True):
            assert share == pytest.approx(shares[name], abs=1e-5)
        assert other["support"] == pytest.approx(found["support"], abs=1e-5)


def test_a_decision_is_what_classify_says_of_its_pairs(client):
    found = decide(client, diagnostics=True)
    pairs = [
        {
            "premise": STATE,
            "hypothesis": f'The answer to "{QUESTION}" is {one["id"]}: {one["description"]}',
        }
        for one in OPTIONS
    ]
    results = classify(client, pairs=pairs)["results"]
    assert found["diagnostics"]["pair_logits"] == [one["logits"] for one in results]
    entailed = [one["probabilities"][1] for one in results]
    assert found["support"] == max(entailed)
    assert found["probabilities"] == [e / math.fsum(entailed) for e in entailed]
    assert found["input_tokens"] == sum(one["input_tokens"] for one in results)


def test_a_shared_request_equals_its_decisions(client):
    decisions = [
        {"id": "a", "question": QUESTION, "options": OPTIONS},
        {"id": "b", "question": "Does it open at nine?", "options": OPTIONS[:2]},
    ]
    body = {"state": STATE, "decisions": decisions, "engine": "nli"}
    answer = client.post("/decide/shared", json=body).json()
    for result, decision in zip(answer["results"], decisions, strict=True):
        direct = decide(client, **decision)
        assert result["prompt_sha256"] == direct["prompt_sha256"]
        assert result["probabilities"] == pytest.approx(direct["probabilities"], abs=1e-5)
    assert answer["timing"]["cache_hit"] is False or answer["timing"]["prefix_tokens"] > 0


def test_system_one_is_the_decision_with_its_labels(client, real, checkpoint):
    criteria = {one["id"]: one["description"] for one in OPTIONS}
    with sdk.TypeSafeClient(
        api_key=TOKEN, base_url=real.url, model=str(checkpoint), timeout=60
    ) as opened:
        response = opened.system_one(
            state=STATE, questions={"q": sdk.Choice(instructions=QUESTION, criteria=criteria)}
        )
    direct = decide(client)
    assert response.model == f"{checkpoint}@r1"
    shares = list(response.choices["q"].probabilities.values())
    assert shares == pytest.approx(direct["probabilities"], abs=1e-5)


@pytest.mark.parametrize(
    "body",
    [
        {"pairs": [PAIRS[0], {"premise": "word " * 600, "hypothesis": "h"}]},
        {"pairs": [PAIRS[0], {"premise": "p", "hypothesis": "word " * 600}]},
        {"text": ["fine", "word " * 600]},
        {"input_ids": [[1, 2], [7] * 513]},
    ],
)
def test_over_the_limit_is_422_with_counts_and_nothing_reaches_the_model(client, body):
    before = reached(client)
    answer = client.post("/classify", json=body)
    assert error_of(answer) == (422, "invalid_request")
    message = answer.json()["error"]["message"]
    assert message.startswith("Input 1 makes ")
    assert message.endswith("the limit is 512 and nothing is truncated.")
    assert [int(word) for word in message.split() if word.isdecimal()][1] > 512
    assert reached(client) == before


@pytest.mark.parametrize("path", ["/decide", "/decide/shared"])
def test_a_state_over_the_limit_is_422_with_counts_and_no_words_of_it(client, path):
    before = reached(client)
    state = "zebrafish " * 600
    body = {**ROW, "state": state}
    if path == "/decide/shared":
        decision = {key: ROW[key] for key in ("id", "question", "options")}
        body = {"state": state, "decisions": [decision], "engine": "nli"}
    answer = client.post(path, json=body)
    assert error_of(answer) == (422, "invalid_request")
    assert "the limit is 512" in answer.text
    assert "zebrafish" not in answer.text + client.server.log()
    assert reached(client) == before


@pytest.mark.parametrize("ids", [[248320], [1, 10**30], [1, 2**32], [0, 2**63]])
def test_an_id_that_the_model_does_not_know_is_422_with_the_range(client, ids):
    before = reached(client)
    answer = client.post("/classify", json={"input_ids": [[1], ids]})
    assert error_of(answer) == (422, "invalid_request")
    message = answer.json()["error"]["message"]
    assert message == "Input 1 holds an id outside 0 to 248319."
    assert reached(client) == before


def test_the_first_and_the_last_id_are_taken(client):
    assert len(classify(client, input_ids=[[0], [248319]])["results"]) == 2


@pytest.mark.parametrize(
    "pair",
    [
        {"premise": " ", "hypothesis": " "},
        {"premise": "\n", "hypothesis": "h"},
        {"premise": "Hypothesis: Premise:", "hypothesis": "Hypothesis:"},
        {"premise": "<|im_end|><|image_pad|>", "hypothesis": "<|endoftext|>"},
        {"premise": "{hypothesis}", "hypothesis": "{premise}{}{0}"},
        {"premise": "\u0000\u202e\ufffd", "hypothesis": "🙂🙂 ﷽"},
        {"premise": "é" * 100, "hypothesis": "e\u0301" * 100},
    ],
)
def test_odd_texts_are_text(client, pair):
    [result] = classify(client, pairs=[pair])["results"]
    assert all(map(math.isfinite, result["logits"]))
    assert client.post("/classify", json={"text": [pair["premise"]]}).status_code == 200


def test_health_tells_the_checkpoint(client, checkpoint):
    health = client.get("/health").json()
    assert health["engines"] == ["nli"]
    assert health["model"] == health["nli"]["model"] == str(checkpoint)
    assert health["nli"]["max_pairs"] == 64
    assert health["max_tokens"] == 512


def test_a_temperature_fitted_over_http_is_the_one_fitted_in_process(
    real, checkpoint, monkeypatch, tmp_path, capsys
):
    rows = [
        {
            "id": f"r{n}",
            "state": f"The lamp is {'on' if n % 3 else 'off'}, says note {n}.",
            "question": "Is the lamp on?",
            "options": [{"id": "yes", "description": "on"}, {"id": "no", "description": "off"}],
            "answer": "yes" if n % 3 else "no",
        }
        for n in range(60)
    ]
    data = tmp_path / "rows"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SEMIF_API_TOKEN", TOKEN)
    for name in ("SEMIF_MODEL", "SEMIF_REVISION"):
        monkeypatch.delenv(name, raising=False)
    asked = ["calibrate", "--engine", "nli", "--workload", "w", "--data", str(data), "--force"]
    assert main([*asked, "--out", "service", "--url", real.url]) == 0
    monkeypatch.setenv("SEMIF_NLI_MODEL", str(checkpoint))
    monkeypatch.setenv("SEMIF_NLI_REVISION", "r1")
    monkeypatch.setenv("SEMIF_NLI_DTYPE", "float32")
    monkeypatch.setenv("SEMIF_DEVICE", "cpu")
    monkeypatch.setenv("SEMIF_MAX_TOKENS", "512")
    assert main([*asked, "--out", "process"]) == 0
    tables = [
        json.loads((tmp_path / out / "calibration.json").read_text())
        for out in ("service", "process")
    ]
    assert tables[0]["w"]["provenance"] == pytest.approx(tables[1]["w"]["provenance"])
    assert tables[0]["w"]["temperature"] == pytest.approx(tables[1]["w"]["temperature"], rel=1e-3)
    journals = [
        [json.loads(line) for line in (tmp_path / out / "rows.jsonl").read_text().splitlines()]
        for out in ("service", "process")
    ]
    for one, other in zip(*journals, strict=True):
        assert one["prompt_sha256"] == other["prompt_sha256"]
        assert one["option_logits"] == pytest.approx(other["option_logits"], abs=1e-5)


def test_a_service_without_the_engine_cannot_be_calibrated(letters, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SEMIF_API_TOKEN", TOKEN)
    assert main(["calibrate", "--engine", "nli", "--workload", "w", "--url", letters.url]) == 1
    gc.collect()  # a connection left open would warn now, and a warning is an error
    said = capsys.readouterr().err
    assert "404: The NLI engine is not loaded here; SEMIF_NLI_MODEL enables it." in said
