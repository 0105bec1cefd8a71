"""Questions as engines get them, answers as OpenAI's SDK reads them, with numbers made up."""

import asyncio
from datetime import date
from typing import Any

import pytest
from decision_bodies import CALL, CHOICE, OUTPUT, PREDICATE, SCORE, body

from semif_bento.api.catalogue import Catalogue, ServedModel
from semif_bento.api.decisions.answers import Decisions
from semif_bento.api.decisions.checking import check
from semif_bento.api.decisions.questions import QUESTIONS_VERSION, to_question
from semif_bento.api.decisions.schema import DecisionsRequest
from semif_bento.api.typed import Answered, Asked, Evidence, Wishes
from semif_bento.calibration import CalibrationTable
from semif_bento.errors import InvalidRequest, ScoringFailed
from semif_bento.questions import Answerable, Question

MODEL = ServedModel("letters", "source@revision", ("org/model@r1", "scripted@r1"), "made up", 255)
CATALOGUE = Catalogue([MODEL], date(2026, 12, 1))
MARGIN = Evidence(
    option_ids=("true", "false"),
    engine="letters",
    margin=0.5,
    near_tie=False,
    prompt_sha256="0" * 64,
    prompt_version="v",
    letter_mass=None,
    support=None,
    pair_logits=None,
    calibrated=None,
)


class MadeUp:
    """An asker that says what it was told to, and remembers what it was asked."""

    def __init__(self, *shares: tuple[float, ...], evidence: Evidence | None = None) -> None:
        self._answers = {
            str(index): Answered({str(place): share for place, share in enumerate(one)}, evidence)
            for index, one in enumerate(shares)
        }

    def wishes(self, model: ServedModel, headers: dict[str, str]) -> Wishes:
        return Wishes.of(headers, CalibrationTable({"hot": 2.0}))

    async def ask(self, *asked: Any) -> Asked:
        self.asked = asked
        return Asked(self._answers, 12, 5)


def answer(asker: MadeUp, headers: dict[str, str] | None = None, **changes: Any) -> dict[str, Any]:
    request = check(DecisionsRequest, body(**changes))
    response = asyncio.run(Decisions(CATALOGUE, asker).answer(request, headers or {}, 3.5))
    return response.model_dump()


def mapped(question: dict[str, Any]) -> Question:
    return to_question(4, check(DecisionsRequest, body(questions=[question])).questions[0])


def test_a_predicate_is_a_yes_or_no():
    assert QUESTIONS_VERSION == "decisions-questions-v1"
    options = (Answerable("true", "yes", ""), Answerable("false", "no", ""))
    assert mapped(PREDICATE) == Question("4", "yes_no", "The tea is cold.", options)


def test_a_choices_options_are_told_apart_by_position_and_labelled_by_value():
    assert mapped(CHOICE) == Question(
        "4",
        "choice",
        "What is the tone?",
        (
            Answerable("0", "calm", ""),
            Answerable("1", "true", "so it is"),
            Answerable("2", "true", ""),
        ),
    )


def test_a_scores_options_are_its_levels_with_their_texts():
    assert mapped(SCORE) == Question(
        "4",
        "levels",
        "How good?",
        (
            Answerable("0", "0", "bad"),
            Answerable("1", "1", "fair: drinkable"),
            Answerable("2", "2", "good"),
        ),
    )


def test_instructions_in_parts_are_a_line_each_json_as_its_text():
    parts = [
        {"type": "input_text", "text": "Is it?"},
        {"type": "input_json", "data": {"é": 1.0}},
        {"type": "input_text", "text": ""},
    ]
    assert mapped({**PREDICATE, "instructions": parts}).instructions == 'Is it?\n{"é": 1.0}\n'


def test_every_kind_of_answer_in_question_order_with_its_name_or_null():
    asker = MadeUp((0.75, 0.25), (0.2, 0.5, 0.3), (0.25, 0.5, 0.25))
    given = answer(asker, questions=[PREDICATE, CHOICE, SCORE])
    for one in given["answers"]:
        assert one.pop("x_trivial")
    assert given == {
        "model": "source@revision",
        "answers": [
            {"type": "predicate", "name": None, "probability": 0.75},
            {
                "type": "choice",
                "name": "tone",
                "choice": True,
                "confidence": pytest.approx(0.25),
                "probabilities": [
                    {"value": "calm", "probability": 0.2},
                    {"value": True, "probability": 0.5},
                    {"value": "true", "probability": 0.3},
                ],
            },
            {
                "type": "score",
                "name": "grade",
                "score": 1.0,
                "confidence": pytest.approx(0.25),
                "probabilities": [
                    {"value": 0, "label": "bad", "probability": 0.25},
                    {"value": 1, "label": "fair", "probability": 0.5},
                    {"value": 2, "label": "good", "probability": 0.25},
                ],
            },
        ],
        "usage": {
            "input_tokens": 12,
            "input_tokens_details": {"cached_tokens": 5, "cache_write_tokens": 0},
            "output_tokens": 0,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 12,
        },
    }


@pytest.mark.parametrize(("shares", "choice"), [((0.1, 0.6, 0.3), True), ((0.1, 0.3, 0.6), "true")])
def test_a_boolean_and_the_string_of_its_name_are_two_choices(shares, choice):
    [given] = answer(MadeUp(shares), questions=[CHOICE])["answers"]
    assert given["choice"] is choice or (given["choice"] == choice == "true")
    assert [row["value"] for row in given["probabilities"]] == ["calm", True, "true"]


def test_of_equals_the_first_is_chosen():
    [given] = answer(MadeUp((0.2, 0.4, 0.4)), questions=[CHOICE])["answers"]
    assert given["choice"] is True


def test_an_empty_name_is_a_name():
    [given] = answer(MadeUp((1.0, 0.0)), questions=[{**PREDICATE, "name": ""}])["answers"]
    assert given["name"] == ""


def test_keys_of_ours_begin_with_x_and_those_that_say_nothing_are_left_out():
    [given] = answer(MadeUp((1.0, 0.0), evidence=MARGIN))["answers"]
    assert list(given)[:4] == ["type", "name", "probability", "x_margin"]
    assert all(key.startswith("x_") for key in list(given)[3:])
    assert "x_letter_mass" not in given


def test_the_asker_gets_name_evidence_questions_wishes_and_time():
    asker = MadeUp((1.0, 0.0))
    headers = {"x-semif-workload": "hot", "x-semif-diagnostics": "true"}
    answer(asker, headers, model="org/model@r1", input=[CALL, OUTPUT])
    assert asker.asked == (
        MODEL,
        [CALL, OUTPUT],
        [mapped(PREDICATE).__class__("0", "yes_no", "The tea is cold.", mapped(PREDICATE).options)],
        Wishes("hot", True),
        3.5,
    )


def test_what_has_no_effect_changes_nothing():
    plain, asked = MadeUp((1.0, 0.0)), MadeUp((1.0, 0.0))
    answer(plain)
    answer(
        asked,
        safety_identifier="who",
        prompt_cache_key="key",
        prompt_cache_options={"mode": "explicit", "ttl": "30m"},
    )
    assert plain.asked == asked.asked


def test_diagnostics_are_true_or_false():
    with pytest.raises(InvalidRequest):
        answer(MadeUp((1.0, 0.0)), {"x-semif-diagnostics": "yes"})


@pytest.mark.parametrize(
    ("question", "shares"),
    [
        (PREDICATE, ()),
        (PREDICATE, ((0.5, 0.3, 0.2),)),
        (PREDICATE, ((1.5, -0.5),)),
        (PREDICATE, ((float("nan"), 0.5),)),
        (CHOICE, ((0.5, 0.5),)),
        (SCORE, ((0.5, 0.5),)),
        (SCORE, ((0.5, float("inf"), 0.5),)),
    ],
)
def test_what_is_no_distribution_over_the_options_is_our_failure(question, shares):
    with pytest.raises(ScoringFailed):
        answer(MadeUp(*shares), questions=[question])
