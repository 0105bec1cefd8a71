"""Strict JSON as a function: what passes unchanged, what is refused, and how fast."""

import json
import time
from collections.abc import Callable

import pytest

from semif_bento.api.decisions import input_schema, schema
from semif_bento.api.decisions.schema import DecisionsRequest
from semif_bento.api.json_paths import PRINTABLE_KEYS, name_path
from semif_bento.api.nli.schema import ClassifyRequest, PairBody
from semif_bento.api.schema import DecideRequest, DecisionBody, OptionBody, SharedRequest
from semif_bento.api.strict_json import MAX_DEPTH, parse
from semif_bento.api.systemone.schema import Noul, SystemOneRequest
from semif_bento.api.validation import check
from semif_bento.errors import InvalidRequest


@pytest.mark.parametrize(
    "text",
    [
        '{"a": [1, -0, 1.5, 1e5, -0.0, 5e-324, null, true, "\\ud83d\\ude00 \\n é"]}',
        '"top"',
        "12345678901234567890123456789",
        '{"": {"": ""}}',
        "9" * 4300,
        "[" * MAX_DEPTH + "]" * MAX_DEPTH,
        '["' + "[" * 500 + '"]',
        r'["\"[[[[", "\\"]' + " " * 9,
    ],
)
def test_json_within_the_rules_is_what_json_loads_makes_of_it(text):
    assert parse(text.encode()) == json.loads(text)
    assert parse(b"\xef\xbb\xbf" + text.encode()) == json.loads(text)


def test_the_order_of_keys_stays():
    assert list(parse(b'{"b": 1, "a": 2, "c": 3}')) == ["b", "a", "c"]


@pytest.mark.parametrize(
    "body",
    [
        b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1),
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        b"[" * 1_000_000,
        b'"' + b'\\"[' * 300_000,
        b'["' + b'\\"' * 500_000 + b"\\",
        b'"' * 1_000_000,
        b"9" * 1_000_000,
    ],
)
def test_hostile_bodies_cost_no_more_than_honest_ones_of_their_size(body):
    def refuse() -> None:
        with pytest.raises(InvalidRequest):
            parse(body)

    honest = b'["' + b'", ["'.join([b"word"] * 90 + [b"x" * len(body)]) + b'"' + b"]" * 91
    # A scan that is quadratic costs thousands of times as much.
    assert cpu_seconds(refuse) < 200 * cpu_seconds(lambda: parse(honest)) + 0.05


def cpu_seconds(work: Callable[[], object]) -> float:
    """What some work takes of a processor: no other process counts."""
    started_s = time.thread_time()
    work()
    return time.thread_time() - started_s


@pytest.mark.parametrize("text", ["{'a': 1}", "[1,]", "01", "+1", '"\t"', r'"\x"', "1 2", "nan"])
def test_near_json_is_refused_at_its_line_and_column(text):
    with pytest.raises(InvalidRequest, match=r"^The body is not JSON at line 1, column \d\.$"):
        parse(text.encode())


def test_a_place_prints_the_protocols_keys_and_hides_the_callers():
    assert name_path(()) == "The top level"
    assert name_path(("decisions", 2, "options", 0, "id")) == "`decisions[2].options[0].id`"
    assert name_path(("state", "id", 3, "options")) == "`state.*[3].*`"
    assert name_path(("secret", 0)) == "`*[0]`"


def test_every_key_of_the_protocol_may_be_printed():
    ours = (DecideRequest, SharedRequest, DecisionBody, OptionBody, ClassifyRequest, PairBody)
    theirs = (SystemOneRequest, Noul, *openai_models())
    assert {key for model in (*ours, *theirs) for key in model.model_fields} == PRINTABLE_KEYS


def openai_models():
    """The models of POST /v1/decisions: all that the request's JSON schema is made of."""
    names = DecisionsRequest.model_json_schema()["$defs"]
    known = {**vars(input_schema), **vars(schema)}
    return (DecisionsRequest, *(known[name] for name in names))


def test_a_request_is_as_sent_digits_order_and_all():
    options = [{"id": "", "description": ""}, {"id": "b", "description": "B"}]
    row = {"id": "r", "state": {"z": 1.10, "a": 10**30}, "question": "q", "options": options}
    body = check(DecideRequest, row)
    assert json.dumps(body.state) == '{"z": 1.1, "a": 1000000000000000000000000000000}'
    assert [option.id for option in body.options] == ["", "b"]
    assert (body.workload, body.diagnostics) == (None, False)
