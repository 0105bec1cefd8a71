"""System One with the NLI model by its name: how questions are asked of it, and its answers."""

import math
from typing import Any

import httpx
import pytest
import typesafe_sdk as sdk
from live import TOKEN, Client
from nli_bodies import MODEL, entailment, says

from semif_bento.entailment import PAIR_TEMPLATE, Pair, decision_sha256, render_hypothesis

STATE = "It rained."
EVIDENCE = ["margin", "near_tie", "prompt_sha256", "prompt_version", "engine", "support"]
NOUL = {"type": "noul", "instructions": "Is it wet?"}


def ask(client: Client, questions: Any, headers: Any = None, **changes: Any) -> httpx.Response:
    body = {"model": MODEL, "state": STATE, "questions": questions, **changes}
    return client.post("/v1/systemone", json=body, headers=headers or {})


def answers(client: Client, questions: Any, **changes: Any) -> dict[str, Any]:
    answer = ask(client, questions, **changes)
    assert answer.status_code == 200, answer.text
    return answer.json()["answers"]


def asked_as(instructions: str, *claims: tuple[str, str], premise: str = STATE) -> str:
    """The hash of what an NLI model reads for a question with these labels and criteria."""
    pairs = [Pair(premise, render_hypothesis(instructions, *claim)) for claim in claims]
    return decision_sha256(PAIR_TEMPLATE, pairs)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (NOUL, ("Is it wet?", ("yes", "yes"), ("no", "no"))),
        (
            {**NOUL, "criteria": {"true": "It drips.", "false": "It is dry."}},
            ("Is it wet?", ("yes", "It drips."), ("no", "It is dry.")),
        ),
        (
            {**NOUL, "criteria": {"true": "It drips."}},
            ("Is it wet?", ("yes", "It drips."), ("no", "no")),
        ),
        (
            {"type": "noul", "criteria": {"true": None, "false": "It is dry."}},
            ("", ("yes", "yes"), ("no", "It is dry.")),
        ),
        (
            {**NOUL, "criteria": {"true": {"drips": True}, "false": ""}},
            ("Is it wet?", ("yes", '{"drips": true}'), ("no", "no")),
        ),
        (
            {"type": "choice", "instructions": "How?", "criteria": {"wet": None, "dry": "no é"}},
            ("How?", ("wet", "wet"), ("dry", "no é")),
        ),
        (
            {"type": "choice", "instructions": None, "criteria": {"a": "", "b": ["x"]}},
            ("", ("a", "a"), ("b", '["x"]')),
        ),
        (
            {"type": "choice", "instructions": {"ask": 'a "b"'}, "criteria": {"x": {}, "y": "{z}"}},
            ('{"ask": "a \\"b\\""}', ("x", "x"), ("y", "{z}")),
        ),
        (
            {"type": "score", "instructions": " How much? ", "criteria": ["none", {"l": 1}, ""]},
            (" How much? ", ("0", "none"), ("1", '{"l": 1}'), ("2", "2")),
        ),
    ],
)
def test_each_kind_of_question_has_its_labels_and_criteria(client, question, expected):
    found = answers(client, {"q": question})["q"]
    assert found["prompt_sha256"] == asked_as(*expected)
    assert found["prompt_version"] == "nli-hyp-v1/nli-pair-v1"


@pytest.mark.parametrize(
    ("state", "premise"),
    [("", ""), ([], "[]"), ({"é": [1, None]}, '{"é": [1, null]}'), (" a ", "a")],
)
def test_a_state_of_any_kind_is_the_premise(client, state, premise):
    found = answers(client, {"q": NOUL}, state=state)["q"]
    expected = asked_as("Is it wet?", ("yes", "yes"), ("no", "no"), premise=premise)
    assert found["prompt_sha256"] == expected


def test_answers_have_the_services_keys_then_ours_with_support(client):
    body = ask(
        client,
        {
            "n": NOUL,
            "c": {"type": "choice", "criteria": {"a": says(0, 2, 0), "b": None}},
            "s": {"type": "score", "criteria": ["low", {"l": 1}, ["high"]]},
        },
    ).json()
    assert list(body) == ["model", "answers", "usage"]
    assert body["model"] == MODEL
    assert {name: list(one) for name, one in body["answers"].items()} == {
        "n": ["type", "noul", *EVIDENCE],
        "c": ["type", "choice", "confidence", "probabilities", *EVIDENCE],
        "s": ["type", "score", "confidence", "legend", "probabilities", *EVIDENCE],
    }
    assert body["answers"]["s"]["legend"] == {"0": "low", "1": {"l": 1}, "2": ["high"]}
    assert body["usage"] == {"input_tokens": 9, "output_tokens": 0}


def test_values_are_normalized_entailment(client):
    triples = [(0.0, 1.0, 0.0), (0.0, 3.0, 1.0), (2.0, 0.0, 0.0)]
    e = [entailment(*logits) for logits in triples]
    shares = [one / math.fsum(e) for one in e]
    texts = [says(*logits) for logits in triples]
    found = answers(
        client,
        {
            "n": {**NOUL, "criteria": {"true": texts[1], "false": texts[0]}},
            "c": {"type": "choice", "criteria": dict(zip("abc", texts, strict=True))},
            "s": {"type": "score", "criteria": texts},
        },
    )
    assert found["n"]["noul"] == pytest.approx(e[1] / (e[0] + e[1]))
    assert found["c"]["choice"] == "b"
    assert list(found["c"]["probabilities"]) == ["a", "b", "c"]
    assert list(found["c"]["probabilities"].values()) == pytest.approx(shares)
    assert found["s"]["score"] == pytest.approx(shares[1] + 2 * shares[2])
    assert found["c"]["support"] == found["s"]["support"] == pytest.approx(max(e))


def test_where_two_are_entailed_alike_the_first_wins(client):
    alike = {"a": says(0, 0, 0), "b": says(0, 1, 0), "c": says(0, 1, 0)}
    assert answers(client, {"q": {"type": "choice", "criteria": alike}})["q"]["choice"] == "b"


def test_one_option_is_certain_and_needs_no_model(untouched):
    found = ask(
        untouched,
        {
            "c": {"type": "choice", "criteria": {"only": None}},
            "s": {"type": "score", "criteria": [{"only": 1}]},
        },
    ).json()
    assert found["answers"]["c"]["trivial"] is True
    assert "support" not in found["answers"]["c"]
    assert found["answers"]["s"]["legend"] == {"0": {"only": 1}}
    assert found["usage"]["input_tokens"] == 0


def test_all_questions_are_one_call_with_a_pair_for_each_option(client):
    before = client.counts()
    questions = {"10": NOUL, "2": {"type": "score", "criteria": ["a", "b", "c"]}, "a": NOUL}
    assert list(answers(client, questions)) == ["10", "2", "a"]
    after = client.counts()
    assert after["calls"] == before["calls"] + 1
    assert after["inputs"] == before["inputs"] + 7


def test_more_pairs_than_the_limit_are_refused_with_counts(untouched):
    questions = {f"q{n}": NOUL for n in range(5)}
    answer = ask(untouched, questions)
    assert answer.status_code == 400
    assert answer.json()["detail"] == {
        "error_type": "max_tokens_exceeded",
        "message": "The request makes 10 pairs; at most 8 are taken.",
    }


def test_a_choice_of_255_is_taken_where_the_limit_allows_it(alone):
    client = Client(alone)
    criteria = {f"o{n}": None for n in range(255)}
    found = answers(client, {"q": {"type": "choice", "criteria": criteria}})["q"]
    assert list(found["probabilities"]) == list(criteria)
    assert found["prompt_version"] == "nli-hyp-v1/nli-pair-v1"
    many = {f"o{n}": None for n in range(256)}
    refused = ask(client, {"q": {"type": "choice", "criteria": many}})
    assert refused.status_code == 400
    client.close()


@pytest.mark.parametrize(
    ("name", "answers_as"),
    [
        ("scripted-nli", MODEL),
        (MODEL, MODEL),
        ("scripted", "scripted@r1"),
        ("scripted@r1", "scripted@r1"),
        ("jev-latest", "scripted@r1"),
    ],
)
def test_a_model_is_asked_by_name_and_aliases_go_to_the_first(client, name, answers_as):
    assert ask(client, {"q": NOUL}, model=name).json()["model"] == answers_as


def test_alone_the_nli_model_has_the_aliases(alone):
    client = Client(alone)
    assert ask(client, {"q": NOUL}, model="jev-latest").json()["model"] == MODEL
    assert ask(client, {"q": NOUL}, model="scripted").status_code == 400
    names = [model["name"] for model in client.get("/v1/models").json()["models"]]
    assert names == [MODEL, "scripted-nli", "jev-latest"]
    client.close()


@pytest.mark.parametrize("name", ["nli", "scripted-nli@r2", "SCRIPTED-NLI", ""])
def test_an_unknown_model_is_refused(untouched, name):
    answer = ask(untouched, {"q": NOUL}, model=name)
    assert answer.status_code == 400
    message = answer.json()["detail"]["message"]
    assert message.startswith("Unknown model; there is: ")
    assert MODEL in message


def test_the_list_of_models_has_both_with_what_they_do(client):
    models = client.get("/v1/models").json()["models"]
    names = [model["name"] for model in models]
    assert names == ["scripted@r1", "scripted", "jev-latest", MODEL, "scripted-nli"]
    assert "option letters" in models[0]["description"]
    for model in models[3:]:
        assert "entailment" in model["description"]
        assert "255 choices" in model["description"]


def test_a_workload_is_the_nli_tables(client):
    plain = answers(client, {"q": NOUL})["q"]
    hot = answers(client, {"q": NOUL}, headers={"x-semif-workload": "hot"})["q"]
    view = hot.pop("calibrated")
    assert hot == plain
    assert (view["workload"], view["temperature"]) == ("hot", 2.0)
    assert list(view["probabilities"]) == ["true", "false"]


@pytest.mark.parametrize(
    ("model", "workload", "known"),
    [(MODEL, "of letters", "cold, hot"), ("scripted", "hot", "of letters")],
)
def test_a_workload_of_the_other_engine_is_unknown(untouched, model, workload, known):
    answer = ask(untouched, {"q": NOUL}, model=model, headers={"x-semif-workload": workload})
    assert answer.status_code == 400
    expected = f"The workload is unknown; known workloads: {known}."
    assert answer.json()["detail"]["message"] == expected


@pytest.mark.parametrize(
    ("kind", "status", "error_type"),
    [
        ("too long", 400, "max_tokens_exceeded"),
        ("out of memory", 529, "out_of_memory"),
        ("not finite", 500, "scoring_failed"),
        ("unexpected", 500, "scoring_failed"),
    ],
)
def test_a_failure_looks_as_its_clients_expect(client, kind, status, error_type):
    answer = ask(client, {"q": NOUL}, state={"raise": kind})
    assert answer.status_code == status
    assert answer.json()["detail"]["error_type"] == error_type
    assert ask(client, {"q": NOUL}).status_code == 200


def test_an_incomplete_answer_is_500_and_none(client):
    answer = ask(client, {"q": NOUL}, state="answer incomplete")
    assert answer.status_code == 500
    assert answer.json()["detail"]["error_type"] == "scoring_failed"


def test_a_noul_that_says_nothing_is_refused_as_before(untouched):
    assert ask(untouched, {"q": {"type": "noul"}}).status_code == 400


def test_the_sdk_asks_the_nli_model_by_name(both):
    with sdk.TypeSafeClient(
        api_key=TOKEN, base_url=both.url, model="scripted-nli", timeout=30
    ) as opened:
        response = opened.system_one(
            state={"weather": "It rained."},
            questions={
                "wet": sdk.Noul(instructions="Is it wet?"),
                "how": sdk.Choice(criteria={"very": None, "hardly": says(0, 5, 0)}),
                "much": sdk.Score(criteria=["none", "much"]),
            },
        )
    assert response.model == MODEL
    assert response.nouls["wet"].noul == pytest.approx(0.5)
    assert response.choices["how"].choice == "hardly"
    assert response.scores["much"].score == pytest.approx(0.5)


@pytest.mark.parametrize("name", ["scripted-nli", MODEL])
def test_an_alias_that_is_the_other_models_name_ends_the_start(launch, name):
    server = launch(SEMIF_MODEL_ALIASES=f"jev-latest, {name}")
    assert server.process.wait(60) == 1
    [line] = [line for line in server.log().splitlines() if "cannot start" in line]
    assert f"Two models would go by the name '{name}'; see SEMIF_MODEL," in line
    assert "Traceback" not in server.log()


def test_an_alias_that_is_the_models_own_name_is_listed_once(launch):
    server = launch(SEMIF_MODEL_ALIASES="scripted, x").wait_until_ready()
    client = Client(server)
    names = [model["name"] for model in client.get("/v1/models").json()["models"]]
    client.close()
    assert names == ["scripted@r1", "scripted", "x", MODEL, "scripted-nli"]
