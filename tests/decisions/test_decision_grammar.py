"""Every legal request passes and maps; every illegal one is refused at its place."""

import copy
import json
from random import Random
from typing import Any

import pytest
from decision_bodies import CALL, CHOICE, OUTPUT, PREDICATE, SCORE, Grammar, body, user

from semif_bento.api.decisions.checking import check
from semif_bento.api.decisions.items import to_state
from semif_bento.api.decisions.questions import to_question
from semif_bento.api.decisions.schema import DecisionsRequest
from semif_bento.errors import InvalidParameter

SEEDS = range(120)
SECRET = "zq7-secret"


def read(value: Any) -> DecisionsRequest:
    return check(DecisionsRequest, value)


def refusal(value: Any) -> tuple[str | None, str]:
    with pytest.raises(InvalidParameter) as caught:
        read(value)
    assert SECRET not in caught.value.message
    assert SECRET not in (caught.value.param or "")
    assert caught.value.message.endswith(".")
    if caught.value.param:
        assert f"`{caught.value.param}`" in caught.value.message
    return caught.value.param, caught.value.kind


@pytest.mark.parametrize("seed", SEEDS)
def test_a_legal_request_passes_and_maps(seed):
    sent = Grammar(seed).body()
    request = read(copy.deepcopy(sent))
    state = to_state(request.input)
    json.dumps(state, allow_nan=False)
    assert len(state) == len(sent["input"])
    for position, (question, asked) in enumerate(
        zip(sent["questions"], request.questions, strict=True)
    ):
        mapped = to_question(position, asked)
        assert mapped.id == str(position)
        assert mapped.instructions
        assert len({option.id for option in mapped.options}) == len(mapped.options)
        assert all(option.label for option in mapped.options)
        assert asked.given_name == question.get("name")


def places(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Every place of a request but what stands in a JSON part, where all is legal."""
    found = [path]
    if isinstance(value, dict):
        for key, child in value.items():
            if key != "data":
                found += places(child, (*path, key))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            found += places(child, (*path, index))
    return found


def put(value: Any, path: tuple[str | int, ...], new: Any) -> Any:
    if not path:
        return new
    holder = value
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = new
    return value


def printed(path: tuple[str | int, ...]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).strip(".")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_wrong_type_anywhere_is_refused_there(seed):
    sent, random = Grammar(seed).body(), Random(seed)
    path = random.choice(places(sent))
    param, _ = refusal(put(copy.deepcopy(sent), path, 7))
    assert (param or "") == printed(path)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_unknown_key_anywhere_is_refused_where_it_stands(seed):
    sent, random = Grammar(seed).body(), Random(seed)
    objects = [path for path in places(sent) if isinstance(at(sent, path), dict)]
    path = random.choice(objects)
    changed = copy.deepcopy(sent)
    at(changed, path)[SECRET] = SECRET
    assert refusal(changed) == (printed(path) or None, "unknown_parameter")


def at(value: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


@pytest.mark.parametrize("seed", SEEDS)
def test_an_empty_list_anywhere_is_refused_there(seed):
    sent, random = Grammar(seed).body(), Random(seed)
    path = random.choice([path for path in places(sent) if isinstance(at(sent, path), list)])
    assert refusal(put(copy.deepcopy(sent), path, [])) == (printed(path), "empty_array")


def deep(levels: int) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for _ in range(levels - 1):
        made = {"k": made}
    return made


def json_input(data: Any) -> dict[str, Any]:
    return body(input=[user({"type": "input_json", "data": data})])


def choices(*values: Any) -> dict[str, Any]:
    return body(questions=[PREDICATE, {**CHOICE, "choices": [{"value": v} for v in values]}])


def levels(count: int) -> dict[str, Any]:
    return body(questions=[{**SCORE, "levels": [{"label": str(n)} for n in range(count)]}])


IMAGE = {"type": "input_image", "image_url": f"data:{SECRET}"}
DATA = "input[0].content[0].data"


@pytest.mark.parametrize(
    ("sent", "param", "code"),
    [
        ([], None, "invalid_type"),
        ({}, "model", "missing_required_parameter"),
        ({"model": "m"}, "input", "missing_required_parameter"),
        ({"model": "m", "input": ""}, "questions", "missing_required_parameter"),
        (body(model=None), "model", "invalid_type"),
        (body(input=None), "input", "invalid_type"),
        (body(input={"role": "user"}), "input", "invalid_type"),
        (body(input=[[]]), "input[0]", "invalid_type"),
        (body(input=[{"content": "x"}]), "input[0].role", "missing_required_parameter"),
        (body(input=[{"role": SECRET, "content": "x"}]), "input[0].role", "invalid_value"),
        (body(input=[{"role": "tool", "content": "x"}]), "input[0].role", "invalid_value"),
        (body(input=[{"role": ["user"], "content": "x"}]), "input[0].role", "invalid_type"),
        (body(input=[{"type": SECRET}]), "input[0].type", "invalid_value"),
        (body(input=[{"type": None, "role": "user"}]), "input[0].type", "invalid_type"),
        (body(input=[{"role": "user"}]), "input[0].content", "missing_required_parameter"),
        (
            body(input=[user({"text": "x"})]),
            "input[0].content[0].type",
            "missing_required_parameter",
        ),
        (body(input=[user({"type": "output_text"})]), "input[0].content[0].type", "invalid_value"),
        (
            body(input=[{"role": "system", "content": [{"type": "input_json", "data": {}}]}]),
            "input[0].content[0].type",
            "invalid_value",
        ),
        (body(input=[OUTPUT]), "input[0].call_id", "invalid_value"),
        (body(input=[OUTPUT, CALL]), "input[0].call_id", "invalid_value"),
        (body(input=[CALL, {**OUTPUT, "call_id": SECRET}]), "input[1].call_id", "invalid_value"),
        (
            body(input=[CALL, {**OUTPUT, "type": "custom_tool_call_output"}]),
            "input[1].call_id",
            "invalid_value",
        ),
        (json_input("text"), DATA, "invalid_value"),
        (json_input([{}, 1]), DATA, "invalid_value"),
        (json_input(deep(33)), DATA, "invalid_value"),
        (json_input({"k": [0] * 10_000}), DATA, "invalid_value"),
        (json_input({"k": "é" * (128 << 10)}), DATA, "invalid_value"),
        (body(questions=[]), "questions", "empty_array"),
        (body(questions=[PREDICATE] * 401), "questions", "array_above_max_length"),
        (body(questions={}), "questions", "invalid_type"),
        (body(questions=["x"]), "questions[0]", "invalid_type"),
        (body(questions=[{"type": "noul"}]), "questions[0].type", "invalid_value"),
        (body(questions=[{**PREDICATE, "name": None}]), "questions[0].name", "invalid_type"),
        (
            body(questions=[{"type": "predicate"}]),
            "questions[0].instructions",
            "missing_required_parameter",
        ),
        (
            body(questions=[{**PREDICATE, "instructions": ""}]),
            "questions[0].instructions",
            "empty_string",
        ),
        (
            body(questions=[{**PREDICATE, "instructions": [{"type": "input_text", "text": ""}]}]),
            "questions[0].instructions",
            "empty_string",
        ),
        (
            body(questions=[{**PREDICATE, "instructions": [IMAGE]}]),
            "questions[0].instructions[0]",
            "unsupported_content_type",
        ),
        (body(questions=[{**PREDICATE, "choices": []}]), "questions[0]", "unknown_parameter"),
        (choices(), "questions[1].choices", "empty_array"),
        (choices("a"), "questions[1].choices", "array_below_min_length"),
        (choices(*map(str, range(256))), "questions[1].choices", "array_above_max_length"),
        (choices("a", "b", "a"), "questions[1].choices", "invalid_value"),
        (choices(True, "true", True), "questions[1].choices", "invalid_value"),
        (choices("a", 1), "questions[1].choices[1].value", "invalid_type"),
        (choices("a", None), "questions[1].choices[1].value", "invalid_type"),
        (choices("a", ""), "questions[1].choices[1].value", "empty_string"),
        (levels(0), "questions[0].levels", "empty_array"),
        (levels(1), "questions[0].levels", "array_below_min_length"),
        (levels(11), "questions[0].levels", "array_above_max_length"),
        (body(input=[user(IMAGE)]), "input[0].content[0]", "unsupported_content_type"),
        (
            body(input=[{"role": "system", "content": [IMAGE]}]),
            "input[0].content[0]",
            "unsupported_content_type",
        ),
        (
            body(input=[CALL, {**OUTPUT, "output": [IMAGE]}]),
            "input[1].output[0]",
            "unsupported_content_type",
        ),
        (body(prompt_cache_options={"ttl": "1h"}), "prompt_cache_options.ttl", "invalid_value"),
        (body(**{SECRET: 1}), None, "unknown_parameter"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_by_its_place_and_openais_code(sent, param, code):
    assert refusal(sent) == (param, code)


@pytest.mark.parametrize(
    "sent",
    [
        body(input=""),
        body(questions=[PREDICATE] * 400),
        choices(True, "true", "false", False),
        choices(*map(str, range(255))),
        levels(2),
        levels(10),
        json_input({}),
        json_input(deep(32)),
        json_input({"k": [0] * 9_999}),
        json_input({"k": "x" * ((256 << 10) - 8)}),
        body(input=[CALL, OUTPUT, OUTPUT, CALL]),
        body(questions=[{**SCORE, "levels": [{"label": "same"}] * 2}]),
        body(questions=[CHOICE, CHOICE]),
    ],
)
def test_what_stands_at_a_limit_passes(sent):
    read(sent)


def test_an_image_is_told_of_in_words():
    with pytest.raises(InvalidParameter, match="is an image; this service reads text"):
        read(body(input=[user(IMAGE)]))


def test_a_megabyte_of_faults_is_told_of_at_the_first():
    assert refusal(body(input=[0] * 500_000)) == ("input[0]", "invalid_type")
    faulty = {**CHOICE, "choices": [0] * 255}
    assert refusal(body(questions=[faulty] * 400))[0] == "questions[0].choices[0]"
