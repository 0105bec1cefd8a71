"""Every refusal that was recorded from the service: status, shape and order; nothing is scored."""

import json
import tracemalloc

import pytest
from systemone_client import NOUL

from semif_bento.api.systemone import schema
from semif_bento.errors import InvalidShape

MODEL = "jev-latest"
KNOWN = "Unknown model; there is: scripted@r1, scripted, jev-latest, jev-1.13.0."
TEXT_FAULTS = [("string_type", "str"), ("dict_type", "dict[any,any]"), ("list_type", "list[any]")]


def body(**changes):
    whole = {"model": MODEL, "state": "s", "questions": {"q": NOUL}, **changes}
    return {key: value for key, value in whole.items() if value is not ...}


def question(**fields):
    return body(questions={"q": fields})


def text_faults(*loc):
    return [(kind, ["body", *loc, tag]) for kind, tag in TEXT_FAULTS]


Q = ("questions", 0)


@pytest.mark.parametrize(
    ("sent", "faults"),
    [
        ([1], [("model_attributes_type", ["body"])]),
        ("text", [("model_attributes_type", ["body"])]),
        (None, [("model_attributes_type", ["body"])]),
        ({}, [("missing", ["body", "model"]), ("missing", ["body", "questions"])]),
        (body(model=..., state=...), [("missing", ["body", "model"])]),
        (body(state=...), [("missing", ["body", "state"])]),
        (body(state=None), [("missing", ["body", "state"])]),
        (body(state=5), text_faults("state")),
        (body(state=True), text_faults("state")),
        (body(model=5), [("string_type", ["body", "model"])]),
        (body(questions=[NOUL]), [("dict_type", ["body", "questions"])]),
        (body(questions={}), [("too_short", ["body", "questions"])]),
        (question(instructions="x"), [("union_tag_not_found", ["body", *Q])]),
        (question(type="noul", instructions=5), text_faults(*Q, "noul", "instructions")),
        (question(type="noul", criteria={"true": 1}), text_faults(*Q, "noul", "criteria", "true")),
        (question(type="choice"), [("missing", ["body", *Q, "choice", "criteria"])]),
        (
            question(type="choice", criteria=["a"]),
            [("dict_type", ["body", *Q, "choice", "criteria"])],
        ),
        (
            question(type="choice", criteria={"a": 1, "b": None}),
            text_faults(*Q, "choice", "criteria", 0),
        ),
        (question(type="score"), [("missing", ["body", *Q, "score", "criteria"])]),
        (question(type="score", criteria={}), [("list_type", ["body", *Q, "score", "criteria"])]),
        (question(type="score", criteria=[]), [("too_short", ["body", *Q, "score", "criteria"])]),
        (question(type="score", criteria=[None]), text_faults(*Q, "score", "criteria", 0)),
    ],
)
def test_a_wrong_shape_is_422_with_pydantics_own_details(unasked, sent, faults):
    response = unasked.send_json(sent)
    assert response.status_code == 422
    assert list(response.json()) == ["detail"]
    details = response.json()["detail"]
    assert [(one["type"], one["loc"]) for one in details] == faults
    assert all(list(one)[:4] == ["type", "loc", "msg", "input"] for one in details)
    assert all(one["input"] is None for one in details)


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        ({}, "Field required"),
        ([], "Input should be a valid dictionary or object to extract fields from"),
        (body(questions={}), "Dictionary should have at least 1 item after validation, not 0"),
        (
            question(type="score", criteria=[]),
            "List should have at least 1 item after validation, not 0",
        ),
        (question(), "Unable to extract tag using discriminator 'type'"),
    ],
)
def test_the_words_of_a_fault_are_the_recorded_ones(unasked, sent, message):
    assert unasked.send_json(sent).json()["detail"][0]["msg"] == message


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (question(type="rank", instructions="x"), "Invalid request."),
        (question(type=None), "Invalid request."),
        (body(temperature=0), "Invalid request."),
        (body(model="gpt-4"), KNOWN),
        (body(model="jev"), KNOWN),
        (
            body(assets={"a": {"type": "image"}}),
            "Images are not supported: this model reads text only.",
        ),
        (question(type="box"), "Images are not supported: this model reads text only."),
    ],
)
def test_a_wrong_use_is_400_with_its_type_and_message(unasked, sent, message):
    response = unasked.send_json(sent)
    assert response.status_code == 400
    assert response.json() == {"detail": {"error_type": "api_usage_error", "message": message}}


def options(count):
    return {f"o{n}": None for n in range(count)}


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (body(questions={"": NOUL}), "Question key cannot be empty."),
        (question(type="noul"), "Noul question must have criteria or instructions."),
        (
            question(type="noul", instructions=None, criteria={"true": None, "false": None}),
            "Noul question must have criteria or instructions.",
        ),
        (question(type="choice", criteria={}), "Choice question must have at least one choice."),
        (
            question(type="choice", criteria=options(256)),
            "Too many choices. Must have at most 255 choices.",
        ),
        (
            question(type="score", criteria=["x"] * 11),
            "Too many score levels. Must have at most 10 levels.",
        ),
    ],
)
def test_a_question_that_cannot_be_asked_is_400_with_a_bare_message(unasked, sent, message):
    response = unasked.send_json(sent)
    assert response.status_code == 400
    assert response.json() == {"detail": message}


TOO_MANY = {"type": "choice", "criteria": options(256)}


@pytest.mark.parametrize(
    ("sent", "status", "told"),
    [
        # an unknown kind before every other fault of shape
        ({"questions": {"a": {"type": "rank"}, "b": {}}}, 400, "Invalid request."),
        # shape before a missing state, which comes before a key too many
        (body(state=..., model=5, more=1), 422, "string_type"),
        (body(state=..., more=1), 422, "missing"),
        # a key too many before an unknown model, which comes before a question's own limits
        (body(more=1, model="x"), 400, "Invalid request."),
        (body(model="x", questions={"q": TOO_MANY}), 400, "Unknown model; there is: "),
    ],
)
def test_of_several_faults_the_recorded_one_comes_first(unasked, sent, status, told):
    response = unasked.send_json(sent)
    assert response.status_code == status
    assert told in response.text


def test_at_most_a_hundred_faults_are_told(unasked):
    response = unasked.send_json(body(questions={str(n): {} for n in range(500)}))
    assert (response.status_code, len(response.json()["detail"])) == (422, 100)


def test_malformed_json_is_422_with_its_position(unasked):
    response = unasked.post_bytes(b'{"model": x}')
    assert response.status_code == 422
    [fault] = response.json()["detail"]
    assert (fault["type"], fault["loc"], fault["msg"]) == (
        "json_invalid",
        ["body", 10],
        "JSON decode error",
    )
    assert unasked.post_bytes(b"").json()["detail"][0]["loc"] == ["body", 0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('"state": NaN', "`state` is not a finite number."),
        ('"state": [1e999]', "`state[0]` is not a finite number."),
        ('"state": "s", "state": "t"', "The top level holds a key twice: `state`."),
        ('"state": "s", "questions": {"q": {}, "q": {}}', "`questions` holds a key twice."),
        (
            '"state": "s", "questions": {"q": {"type": "choice", "criteria": {"a": "", "a": ""}}}',
            "`questions.*.criteria` holds a key twice.",
        ),
        (r'"state": "\ud83d"', "`state` holds a lone surrogate."),
        (r'"state": "s", "questions": {"\ud83d": {}}', "`questions` holds a key with a lone"),
        ('"state": ' + "9" * 5000, "`state` is an integer of more than 4300 digits."),
        ('"state": ' + "[" * 1000 + "]" * 1000, "The body is nested deeper than 100 levels"),
        ('"state": ' + "[" * 30000, "The body is nested deeper than 100 levels"),
    ],
)
def test_json_that_others_let_pass_is_422_and_names_the_place(unasked, text, message):
    response = unasked.post_bytes(f'{{"model": "{MODEL}", {text}}}'.encode())
    assert response.status_code == 422
    [fault] = response.json()["detail"]
    assert fault["msg"].startswith(message)


def test_a_prompt_over_the_token_limit_is_400_with_both_counts(jev):
    response = jev.ask(state={"raise": "too long"})
    assert response.status_code == 400
    detail = response.json()["detail"]
    assert detail["error_type"] == "max_tokens_exceeded"
    assert "5000" in detail["message"]
    assert "4096" in detail["message"]


def test_deep_and_huge_questions_are_refused_too(unasked):
    deep = json.loads("[" * 99 + "]" * 99)
    assert unasked.send_json(question(type="noul", instructions=deep)).status_code == 422


@pytest.mark.parametrize(
    ("kind", "criteria"),
    [("score", [1] * 200_000), ("choice", dict.fromkeys(map(str, range(200_000)), 1))],
)
def test_criteria_that_are_far_too_many_are_not_all_described(kind, criteria):
    tracemalloc.start()
    with pytest.raises(InvalidShape) as refused:
        schema.check(schema.SystemOneRequest, question(type=kind, criteria=criteria))
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(refused.value.details) == 100
    assert peak_bytes < 32 << 20


def test_criteria_that_are_right_and_far_too_many_are_refused_by_number(unasked):
    for kind, criteria, words in (
        ("score", ["level"] * 2000, "Too many score levels"),
        ("choice", dict.fromkeys(map(str, range(2000)), "x"), "Too many choices"),
    ):
        answer = unasked.post("/v1/systemone", json=question(type=kind, criteria=criteria))
        assert (answer.status_code, words in answer.text) == (400, True)
