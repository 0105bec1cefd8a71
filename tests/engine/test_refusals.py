"""What is wrong with a request is found before anything reaches the device."""

import pytest
from models.byte_qwen import build_byte_qwen
from models.rows import request_of, row_about
from models.scorers import assemble

from semif_bento.errors import InvalidRequest

LIMIT = 1024
PLAIN = row_about("state")
LONG_STATE = row_about("x" * LIMIT)
LONG_QUESTION = {**row_about("state", question="x" * LIMIT), "id": "long"}
SURROGATES = {
    "state": row_about("secret \udfff"),
    "key": row_about({"secret \udfff": 1}),
    "question": row_about("state", question="secret \udfff"),
    "description": {
        **PLAIN,
        "options": [{"id": "a", "description": "secret \udfff"}, PLAIN["options"][1]],
    },
}


@pytest.fixture(scope="module")
def scorer():
    return assemble(build_byte_qwen(), max_tokens=LIMIT)


@pytest.fixture
def untouched(scorer, reached):
    """A scorer whose requests must all be refused before the backbone, and which still works."""
    yield scorer
    assert reached == []
    scorer.direct(request_of([PLAIN]))
    assert reached == ["whole"]


@pytest.mark.parametrize("row", [LONG_STATE, LONG_QUESTION], ids=["state", "question"])
@pytest.mark.parametrize("diagnostics", [True, False])
def test_a_prompt_over_the_limit_reaches_no_model(untouched, row, diagnostics):
    tokens = len(row["state"]) + len(row["question"])
    for score in (untouched.direct, untouched.shared):
        with pytest.raises(InvalidRequest) as refused:
            score(request_of([row], diagnostics=diagnostics))
        count = int(refused.value.message.partition("prompt of ")[2].partition(" ")[0])
        assert count > max(LIMIT, tokens)
        assert f"the limit is {LIMIT} and nothing is truncated" in refused.value.message


def test_one_long_decision_among_others_reaches_no_model(untouched):
    with pytest.raises(InvalidRequest, match=r"^Decision 1 makes a prompt of"):
        untouched.shared(request_of([PLAIN, LONG_QUESTION, {**PLAIN, "id": "third"}]))


@pytest.mark.parametrize("row", SURROGATES.values(), ids=SURROGATES)
def test_a_lone_surrogate_reaches_no_model_and_is_not_quoted(untouched, row):
    for score in (untouched.direct, untouched.shared):
        with pytest.raises(InvalidRequest) as refused:
            score(request_of([row]))
        assert refused.value.message == "A text holds a lone surrogate and cannot be encoded."


def test_a_refused_request_leaves_no_trace_in_the_prefix_cache(untouched):
    before = untouched.status().prefix_cache
    with pytest.raises(InvalidRequest):
        untouched.shared(request_of([PLAIN, LONG_QUESTION]))
    assert untouched.status().prefix_cache == before
