"""How a System One question becomes what the model reads."""

import pytest

from semif_bento.api.systemone.questions import to_question
from semif_bento.api.systemone.schema import SystemOneRequest, check
from semif_bento.engine.letters.wording import word


def decision(**question):
    body = {"model": "m", "state": "s", "questions": {"the id": question}}
    checked = check(SystemOneRequest, body)
    return word(to_question("the id", checked.questions["the id"], 255))


def read(**question):
    """The question and the descriptions: all that reaches the model."""
    asked = decision(**question)
    return asked.question, [option.description for option in asked.options]


def test_a_noul_offers_yes_first_and_then_no():
    assert decision(type="noul", instructions="?").options[0].id == "true"
    assert read(type="noul", instructions="Cold?") == (
        "Cold?",
        ["The answer is yes.", "The answer is no."],
    )
    criteria = {"false": "warm", "true": {"is": "cold"}}
    assert read(type="noul", criteria=criteria) == (
        "Which of the two descriptions does the evidence support?",
        ['{"is": "cold"}', "warm"],
    )
    assert read(type="noul", instructions="?", criteria={"true": "cold"})[1] == [
        "cold",
        "The answer is no.",
    ]


def test_a_choice_shows_names_and_descriptions_in_order():
    criteria = {"b": None, "a": "first", "c": "", "d": {"k": [1, "é"]}, "e": {}}
    assert read(type="choice", instructions="Who?", criteria=criteria) == (
        "Who?",
        ["b", "a: first", "c", 'd: {"k": [1, "é"]}', "e"],
    )
    assert [o.id for o in decision(type="choice", criteria=criteria).options] == list(criteria)


def test_a_score_shows_levels_and_not_their_numbers():
    assert read(type="score", criteria=["low", {"l": 1}, ["high"]]) == (
        "Which of the levels does the evidence support?",
        ["low", '{"l": 1}', '["high"]'],
    )


@pytest.mark.parametrize("instructions", [None, "", {}, []])
def test_instructions_that_say_nothing_are_replaced(instructions):
    question = read(type="choice", instructions=instructions, criteria={"a": None})[0]
    assert question == "Which of the options does the evidence support?"


def test_text_that_looks_like_json_and_keys_stay_as_they_are():
    instructions = {"z": '{"a": 1}', "a": 12345678901234567890123}
    assert read(type="noul", instructions=instructions)[0] == (
        '{"z": "{\\"a\\": 1}", "a": 12345678901234567890123}'
    )


def test_the_id_of_a_question_never_reaches_the_model():
    question, descriptions = read(type="noul", instructions="?")
    assert "the id" not in question + "".join(descriptions)
