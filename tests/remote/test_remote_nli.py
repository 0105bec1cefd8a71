"""NLI over servers that classify: the torch engine's answers, its refusals, and every fault."""

import math

import pytest
import torch
from asking import eventually, servers
from models.byte_qwen import byte_tokenizer
from models.nli import open_with_checkpoint, save_nli_model
from scripted_engine import MODEL, ScriptedEngine

from semif_bento.caller import Caller
from semif_bento.entailment import Pair, Rendered, Tokens
from semif_bento.errors import EngineFault, InvalidRequest, PromptTooLong, StartupError

PREMISES = ("The shop opens at nine.", '{"said": "ok :)"}', "It rained in Kyoto: 雨。")
PAIRS = [Pair(p, f"Claim {n} holds: {n * 7}.") for p in PREMISES for n in range(3)]


@pytest.fixture(scope="module")
def nli_directory(tmp_path_factory):
    small = {"vocab_size": 320, "hidden_size": 64, "intermediate_size": 64}
    return save_nli_model(tmp_path_factory.mktemp("nli"), tokenizer=byte_tokenizer(), **small)


@pytest.fixture(scope="module")
def opened(nli_directory):
    """The torch engine over it, and the untouched checkpoint."""
    return open_with_checkpoint(nli_directory)


@pytest.fixture
def classifying(dialect, opened):
    """Two servers that compute with the checkpoint that the torch engine of these tests has."""
    checkpoint = opened[1]

    @torch.inference_mode()
    def classify(inputs):
        return [
            checkpoint.model(input_ids=torch.tensor([ids]), use_cache=False).logits[0].tolist()
            for ids in inputs
        ]

    engines = [ScriptedEngine(dialect, byte_tokenizer()).start() for _ in range(2)]
    for engine in engines:
        engine.classify = classify
        engine.models = [{"id": MODEL, "max_model_len": 2048}]
    yield engines
    for engine in engines:
        engine.stop()


@pytest.fixture
def open_nli(gateway, nli_directory):
    def start(*engines, **changes):
        nli = {
            "model": "none",
            "revision": None,
            "nli_model": str(nli_directory),
            "nli_revision": "test",
            "nli_dtype": "float32",
            "backend_urls": (),
            "backend_nli_urls": tuple(engine.url for engine in engines),
            "backend_nli_model": MODEL,
        }
        return gateway(*engines, **(nli | changes))

    return start


def test_the_answers_equal_the_torch_engines(classifying, open_nli, opened):
    remote = open_nli(*classifying).engines["nli"].classifier
    ours = opened[0]
    assert remote.template == ours.template
    inputs = [*PAIRS, Rendered("Premise: a\nHypothesis: b"), Tokens((5, 6, 7)), PAIRS[0]]
    theirs, expected = remote.classify(inputs, Caller()), ours.classify(inputs)
    for one, other in zip(theirs.rows, expected.rows, strict=True):
        assert one.logits == pytest.approx(other.logits, abs=1e-4)
        assert (one.tokens_sha256, one.input_tokens) == (other.tokens_sha256, other.input_tokens)
    assert theirs.timing.input_tokens == expected.timing.input_tokens


def test_equal_inputs_are_asked_once_and_a_premise_goes_to_one_server(classifying, open_nli):
    remote = open_nli(*classifying).engines["nli"].classifier
    before = [len(engine.calls) for engine in classifying]
    outcome = remote.classify([*PAIRS, *PAIRS], Caller())
    asked = [engine.calls[count:] for engine, count in zip(classifying, before, strict=True)]
    assert all(len(calls) <= 1 for calls in asked)
    assert outcome.timing.groups == sum(map(len, asked))
    key = "input" if classifying[0].dialect == "vllm" else "input_ids"
    inputs = [ids for calls in asked for call in calls for ids in call[key]]
    assert len(inputs) == len(PAIRS)
    for premise in PREMISES:
        alone = remote.classify([Pair(premise, "x"), Pair(premise, "y")], Caller())
        assert alone.timing.groups == 1


@pytest.mark.parametrize(
    ("kind", "row"),
    [
        ("not_finite", [0.1, math.nan, 0.2]),
        ("implausible", [0.1, -1e30, 0.2]),
        ("wrong_count", [1.0]),  # how a server may hide an error: one class, surely
        ("malformed", ["a", 0.1, 0.2]),
        ("malformed", None),
    ],
)
def test_an_answer_that_must_not_be_believed_fails_its_request(classifying, open_nli, kind, row):
    remote = open_nli(*classifying, backend_check_s=60.0).engines["nli"].classifier
    for engine in classifying:
        engine.classify = lambda inputs: [row for _ in inputs]
    with pytest.raises(EngineFault) as caught:
        remote.classify(PAIRS, Caller())
    assert caught.value.kind == kind


def test_a_lost_server_is_passed_over_and_returns(classifying, open_nli):
    backend = open_nli(*classifying)
    remote = backend.engines["nli"].classifier
    expected = remote.classify(PAIRS, Caller())
    classifying[0].stop()
    found = remote.classify(PAIRS, Caller())
    assert [row.tokens_sha256 for row in found.rows] == [r.tokens_sha256 for r in expected.rows]
    classifying[0].start()
    eventually(lambda: all(server.is_ready for server in servers(backend)))


def test_a_callers_fault_reaches_no_server(classifying, open_nli):
    remote = open_nli(*classifying, max_tokens=256).engines["nli"].classifier
    before = [len(engine.calls) for engine in classifying]
    for given, error in (
        (Pair("word " * 400, "x"), PromptTooLong),
        (Pair("\ud800", "x"), InvalidRequest),
        (Tokens((10**9,)), InvalidRequest),
    ):
        with pytest.raises(error):
            remote.classify([given], Caller())
    assert [len(engine.calls) for engine in classifying] == before


def test_probabilities_in_the_place_of_logits_stop_the_start(classifying, open_nli):
    for engine in classifying:
        engine.classify = lambda inputs: [[0.2, 0.5, 0.3] for _ in inputs]
    with pytest.raises(StartupError, match="probabilities where logits were asked for"):
        open_nli(*classifying)


def test_servers_that_differ_stop_the_start(classifying, open_nli):
    honest = classifying[0].classify
    classifying[1].classify = lambda inputs: [[a + 0.1, b, c] for a, b, c in honest(inputs)]
    with pytest.raises(StartupError, match=r"differ by 0\.1 from another server's"):
        open_nli(*classifying)


def test_both_engines_stand_beside_each_other(classifying, engines, gateway, nli_directory):
    backend = gateway(
        *engines,
        nli_model=str(nli_directory),
        nli_revision="test",
        nli_dtype="float32",
        backend_nli_urls=tuple(engine.url for engine in classifying),
        backend_nli_model=MODEL,
    )
    names = [engine.name for engine in (*engines, *classifying)]
    assert [server.name for server in servers(backend)] == names
    assert backend.slots == 4 * 16
    assert backend.engines["nli"].classifier.identity.source == str(nli_directory)
    assert backend.engines["letters"].identity != backend.engines["nli"].classifier.identity
