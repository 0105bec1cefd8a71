"""The prompt protocol: constants and text equal the reference's, byte for byte."""

import json
import math

import pytest
from fastjev._runtime import core

from semif_bento import protocol
from semif_bento.decisions import Decision, Option

OPTIONS = tuple(Option(f"o{n}", f"Option {n} “é” 😀") for n in range(16))
STATES = [
    "text",
    'a "quoted" \\ text\n',
    {"z": 1, "a": [1.5, None, {"é": "😀"}]},
    [12345678901234567890],
]


def test_the_constants_are_the_references():
    assert protocol.SYSTEM_TEXT == core.DIRECT_SYSTEM
    assert protocol.LETTERS == core.LETTERS


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("count", [2, 3, 16])
def test_the_payload_is_the_references_text(state, count):
    decision = Decision("d", "Which “one”?", OPTIONS[:count])
    row = {
        "id": "d",
        "state": state,
        "question": decision.question,
        "options": [{"id": o.id, "description": o.description} for o in decision.options],
    }
    [_, user] = core.direct_messages(row)
    assert protocol.render_payload(state, decision) == user["content"]


@pytest.mark.parametrize("state", STATES)
def test_the_evidence_alone_is_the_start_of_every_payload(state):
    decision = Decision("d", "q", OPTIONS[:2])
    evidence = protocol.render_evidence(state)
    assert evidence.endswith(protocol.CRITERION_EDGE)
    assert protocol.render_payload(state, decision).startswith(evidence)
    assert json.loads(protocol.render_payload(state, decision))["evidence"] == state


def test_a_hash_is_of_the_utf8_text():
    assert protocol.prompt_sha256("é") == core.digest("é")


@pytest.mark.parametrize("logits", [(0.0, 0.0), (1000.0, -1000.0), (-1e4, -1e4 + 1, -1e4 + 2)])
def test_the_softmax_is_the_references_and_survives_large_logits(logits):
    assert protocol.softmax(logits) == pytest.approx(core.softmax(list(logits)), abs=1e-15)
    assert math.fsum(protocol.softmax(logits)) == pytest.approx(1)


def test_a_temperature_flattens_and_1_leaves_as_is():
    cool, native, hot = (protocol.softmax((0.0, 1.0), t)[1] for t in (0.5, 1.0, 2.0))
    assert cool > native > hot > 0.5
    assert native == protocol.softmax((0.0, 1.0))[1]
