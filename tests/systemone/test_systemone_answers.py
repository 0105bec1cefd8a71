"""What a right System One request is answered with, from a real server."""

import math

import pytest
from systemone_client import NOUL

EVIDENCE = ["margin", "near_tie", "prompt_sha256", "prompt_version", "engine"]


def choice(count, **more):
    return {"type": "choice", "criteria": {f"o{n}": None for n in range(count)}, **more}


def test_the_keys_are_the_services_in_its_order_and_then_ours(jev):
    response = jev.ask(
        {
            "n": NOUL,
            "c": {"type": "choice", "instructions": "?", "criteria": {"a": "x", "b": None}},
            "s": {"type": "score", "instructions": "?", "criteria": ["low", {"l": 1}, ["high"]]},
        }
    )
    assert response.status_code == 200
    body = response.json()
    assert list(body) == ["model", "answers", "usage"]
    assert list(body["usage"]) == ["input_tokens", "output_tokens"]
    keys = {name: list(answer) for name, answer in body["answers"].items()}
    assert keys == {
        "n": ["type", "noul", *EVIDENCE],
        "c": ["type", "choice", "confidence", "probabilities", *EVIDENCE],
        "s": ["type", "score", "confidence", "legend", "probabilities", *EVIDENCE],
    }
    assert body["answers"]["s"]["legend"] == {"0": "low", "1": {"l": 1}, "2": ["high"]}
    assert body["usage"] == {"input_tokens": 9, "output_tokens": 0}


def test_values_follow_the_logits(jev):
    # The scripted scorer gives option k the logit k.
    answers = jev.answers(
        {"n": NOUL, "c": choice(3), "s": {"type": "score", "criteria": ["a", "b", "c"]}}
    )
    weights = [1, math.e, math.e**2]
    shares = [weight / sum(weights) for weight in weights]
    assert answers["n"]["noul"] == pytest.approx(1 / (1 + math.e))
    assert answers["c"]["choice"] == "o2"
    assert list(answers["c"]["probabilities"].values()) == pytest.approx(shares)
    assert answers["c"]["margin"] == pytest.approx(shares[2] - shares[1])
    assert answers["s"]["score"] == pytest.approx(shares[1] + 2 * shares[2])
    assert answers["s"]["probabilities"] == pytest.approx(dict(zip("012", shares, strict=True)))


@pytest.mark.parametrize("count", [2, 16, 17, 52, 53, 255])
def test_a_choice_takes_up_to_255_options_and_wide_ones_have_their_own_version(jev, count):
    answer = jev.answers({"q": choice(count)})["q"]
    assert list(answer["probabilities"]) == [f"o{n}" for n in range(count)]
    assert sum(answer["probabilities"].values()) == pytest.approx(1, abs=1e-6)
    assert answer["choice"] == f"o{count - 1}"
    version = "direct-options-v1" if count <= 16 else "direct-options-wide-v1"
    assert answer["prompt_version"] == version


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (
            choice(1),
            {"type": "choice", "choice": "o0", "confidence": 1.0, "probabilities": {"o0": 1.0}},
        ),
        (
            {"type": "score", "criteria": [{"only": 1}]},
            {
                "type": "score",
                "score": 0.0,
                "confidence": 1.0,
                "legend": {"0": {"only": 1}},
                "probabilities": {"0": 1.0},
            },
        ),
    ],
)
def test_one_option_is_certain_and_needs_no_model(unasked, asked, expected):
    response = unasked.ask({"q": asked})
    assert response.json()["answers"] == {"q": {**expected, "trivial": True}}
    assert response.json()["usage"] == {"input_tokens": 0, "output_tokens": 0}


def test_ten_levels_are_taken(jev):
    answer = jev.answers({"q": {"type": "score", "criteria": [str(n) for n in range(10)]}})["q"]
    assert list(answer["probabilities"]) == [str(n) for n in range(10)]
    assert 0 <= answer["score"] <= 9


def test_answers_keep_the_order_of_the_questions_whatever_their_ids(jev):
    ids = ["10", "2", "__proto__", "a b", "é", "q" * 300, "constructor", "1", "<|im_end|>"]
    questions = {name: choice(1) if n % 3 == 2 else NOUL for n, name in enumerate(ids)}
    assert list(jev.answers(questions)) == ids


def test_options_keep_their_order_and_names(jev):
    names = ["10", "2", "", "__proto__", "b", "a"]
    answer = jev.answers({"q": {"type": "choice", "criteria": dict.fromkeys(names)}})["q"]
    assert list(answer["probabilities"]) == names


def test_512_questions_in_one_call_are_one_call_of_the_scorer_and_all_answered(jev):
    before = jev.counts()["calls"]
    answers = jev.answers({f"q{n}": NOUL for n in range(512)})
    assert list(answers) == [f"q{n}" for n in range(512)]
    assert jev.counts()["calls"] == before + 1


@pytest.mark.parametrize("state", ["", [], {}, "text", [1, "a", None], {"k": {"v": 1.5}}])
def test_a_state_may_be_any_text_object_or_array_and_empty(jev, state):
    assert jev.ask(state=state).status_code == 200


@pytest.mark.parametrize(
    "asked",
    [
        {"type": "noul", "criteria": {"true": "tea is cold", "false": "tea is warm"}},
        {"type": "noul", "criteria": {"true": "very cold"}},
        {"type": "noul", "instructions": "?", "criteria": {"false": None}},
        {"type": "noul", "instructions": {"question": "Is `item` cold?", "item": "tea"}},
        {"type": "noul", "instructions": ["Is it cold?", "The tea."]},
        {"type": "noul", "instructions": ""},
        {"type": "noul", "instructions": "?", "note": 1},
        {"type": "noul", "instructions": "?", "criteria": {"true": "a", "other": 1}},
        {"type": "choice", "criteria": {"calm": None, "angry": {"signs": ["caps"]}, "sad": [1]}},
        {"type": "choice", "instructions": None, "criteria": {"a": "", "b": {}}},
        {"type": "score", "criteria": [{"label": "warm"}, ["cool"], "cold", ""]},
    ],
)
def test_every_form_of_a_question_is_taken(jev, asked):
    assert jev.ask({"q": asked}).status_code == 200


def test_the_answer_names_what_really_answered_under_every_name(jev):
    for name in ("scripted@r1", "scripted", "jev-latest", "jev-1.13.0"):
        assert jev.ask(model=name).json()["model"] == "scripted@r1"


def test_models_lists_every_name_with_what_the_client_requires(jev):
    models = jev.get("/v1/models").json()["models"]
    names = [model["name"] for model in models]
    assert names == ["scripted@r1", "scripted", "jev-latest", "jev-1.13.0"]
    for model in models:
        assert list(model) == ["name", "description", "release_date"]
        assert "scripted@r1 in float32" in model["description"]
        assert "255 choices" in model["description"]
        assert len(model["release_date"]) == 10


def test_headers_name_the_formulas_and_the_mapping(jev):
    headers = jev.ask().headers
    assert headers["x-semif-confidence"] == "peak-over-uniform;mode-distance"
    assert headers["x-semif-questions"] == "systemone-questions-v1"


def test_a_workload_adds_a_calibrated_view_beside_the_native_numbers(jev):
    questions = {"n": NOUL, "c": choice(3), "wide": choice(17), "one": choice(1)}
    plain = jev.answers(questions)
    hot = jev.answers(questions, headers={"x-semif-workload": "hot"})
    calibrated = hot["n"].pop("calibrated")
    assert calibrated["workload"] == "hot"
    assert calibrated["temperature"] == 2.0
    assert calibrated["probabilities"]["true"] == pytest.approx(1 / (1 + math.exp(0.5)))
    assert list(hot["c"].pop("calibrated")["probabilities"]) == ["o0", "o1", "o2"]
    assert hot == plain  # no temperature was fitted for a wide prompt, or for none at all


def test_diagnostics_add_the_letter_mass(jev):
    assert "letter_mass" not in jev.answers({"q": NOUL})["q"]
    asked = jev.answers({"q": NOUL}, headers={"x-semif-diagnostics": "true"})["q"]
    assert asked["letter_mass"] == 0.75


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ({"x-semif-workload": "cold"}, "The workload is unknown; known workloads: hot."),
        ({"x-semif-diagnostics": "1"}, "x-semif-diagnostics must be true or false."),
    ],
)
def test_a_wish_that_cannot_be_met_is_400(unasked, headers, message):
    response = unasked.ask(headers=headers)
    assert response.status_code == 400
    assert response.json()["detail"] == {"error_type": "api_usage_error", "message": message}


@pytest.mark.parametrize("fault", ["incomplete", "out of range"])
def test_a_scorer_that_answers_wrongly_is_500_and_no_answer(jev, fault):
    response = jev.ask(state={"answer": fault})
    assert response.status_code == 500
    assert response.json()["detail"]["error_type"] == "scoring_failed"
    assert jev.ask().status_code == 200
