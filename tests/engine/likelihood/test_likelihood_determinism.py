"""Neither the order of options nor what ran before moves a bit of an answer."""

import random

import pytest
import torch
from models import likelihood
from models.byte_qwen import build_byte_qwen
from models.faults import RecordingDevice, failing
from models.likelihood import request_of
from models.rows import generate

from semif_bento.decisions import Decision, Option, ScoreRequest
from semif_bento.engine.likelihood.priors import PriorCache
from semif_bento.engine.memory import MemoryGuard

REQUEST = request_of(generate(4, 5, seed=5)[3])
OTHERS = [request_of(rows) for rows in generate(3, 2, seed=6)]
MANY = Decision("many", "?", tuple(Option(f"o{n}", f"{n * n} parts") for n in range(255)))


@pytest.fixture(scope="module", params=["cascade", "views"])
def assembled(request):
    scorer = likelihood.assemble(build_byte_qwen(), branch_attention=request.param)
    likelihood.narrow(scorer, REQUEST, branches=1)
    return scorer


@pytest.fixture
def scorer(assembled):
    """A scorer that has to split the request into groups and knows nothing."""
    assembled.forget_prefixes()
    assembled.guard = MemoryGuard(RecordingDevice(), assembled._prefix_cache)
    return assembled


def shuffled(request, seed):
    random_ = random.Random(seed)
    decisions = [
        Decision(d.id, d.question, tuple(random_.sample(d.options, len(d.options))))
        for d in request.decisions
    ]
    return ScoreRequest(request.state, tuple(decisions))


def by_option(scores):
    answers = zip(scores.option_ids, scores.option_logits, scores.probabilities, strict=True)
    return {option: (logit.hex(), p.hex()) for option, logit, p in answers}


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_options_moves_no_bit(scorer, seed):
    expected = scorer.shared(REQUEST).scores
    if seed:
        scorer.forget_prefixes()
    turned = shuffled(REQUEST, seed)
    for found, before in zip(scorer.shared(turned).scores, expected, strict=True):
        assert by_option(found) == by_option(before)
        assert found.prompt_sha256 == before.prompt_sha256
        assert found.input_tokens == before.input_tokens
    alone = ScoreRequest(turned.state, turned.decisions[:1])
    direct = scorer.direct(ScoreRequest(REQUEST.state, REQUEST.decisions[:1])).scores
    assert by_option(scorer.direct(alone).scores) == by_option(direct)


def test_equal_texts_score_equally_and_leave_the_others_alone(scorer):
    options = (Option("a", "Yes"), Option("b", "No"))
    twice = (Option("c", "No"), *options, Option("d", "Yes"))
    plain = ScoreRequest("state", (Decision("d", "Is it?", options),))
    scores = scorer.shared(ScoreRequest("state", (Decision("d", "Is it?", twice),))).scores[0]
    no, yes, no_too, yes_too = scores.option_logits
    assert (no, yes) == (no_too, yes_too)
    assert (yes, no) == scorer.shared(plain).scores[0].option_logits
    assert scores.prompt_sha256 == scorer.shared(plain).scores[0].prompt_sha256


def test_a_repeated_request_gives_the_same_bits(scorer):
    alone = scorer.shared(REQUEST)
    assert not alone.timing.cache_hit
    assert alone.timing.branch_groups > 1
    for request in (*OTHERS, ScoreRequest(REQUEST.state, OTHERS[0].decisions)):
        scorer.shared(request)
    again = scorer.shared(REQUEST)
    assert again.timing.cache_hit
    assert again.scores == alone.scores
    assert again.timing.branch_groups == alone.timing.branch_groups
    scorer.forget_prefixes()
    assert scorer.shared(REQUEST).scores == alone.scores


def test_a_known_prior_is_not_computed_again_and_changes_no_bit(scorer, reached):
    decision = REQUEST.decisions[:1]
    first = scorer.direct(ScoreRequest(REQUEST.state, decision)).scores
    assert reached == ["prefill", "prefill"]  # behind the prior's text, behind the state
    reached.clear()
    assert scorer.direct(ScoreRequest(REQUEST.state, decision)).scores == first
    assert reached == ["prefill"]
    scorer.direct(ScoreRequest("another state", decision))
    scorer.shared(ScoreRequest("a third state", decision))
    assert reached == ["prefill"] * 3


def test_direct_answers_touch_no_prefix_cache(scorer):
    decision = ScoreRequest(REQUEST.state, REQUEST.decisions[:1])
    scorer.direct(decision)
    status = scorer.status().prefix_cache
    assert status.entries == 0
    scorer.shared(decision)
    before = scorer.status().prefix_cache
    scorer.direct(decision)
    assert scorer.status().prefix_cache == before


def test_groups_change_answers_by_rounding_only(scorer):
    narrowed = scorer.shared(REQUEST)
    budget = scorer._reader.budget
    likelihood.narrow(scorer, REQUEST, branches=100)
    scorer.forget_prefixes()
    wide = scorer.shared(REQUEST)
    scorer._reader.budget = budget
    assert wide.timing.branch_groups <= narrowed.timing.branch_groups
    for found, expected in zip(narrowed.scores, wide.scores, strict=True):
        assert found.option_logits == pytest.approx(expected.option_logits, abs=2e-3)


def test_255_options_in_several_groups(scorer):
    request = ScoreRequest("state", (MANY,))
    budget = scorer._reader.budget
    likelihood.narrow(scorer, request, branches=100)
    found = scorer.shared(request)
    turned = scorer.shared(ScoreRequest("state", (Decision("many", "?", MANY.options[::-1]),)))
    scorer._reader.budget = budget
    assert found.timing.branch_groups > 1
    assert len(by_option(found.scores[0])) == 255
    assert by_option(found.scores[0]) == by_option(turned.scores[0])


def test_after_out_of_memory_the_call_is_tried_again_and_gives_the_same_bits(scorer, monkeypatch):
    alone = scorer.shared(REQUEST)
    calls = []
    states = scorer._reader.backbone.branch_states
    exhausted = {2: lambda: torch.OutOfMemoryError("CUDA out of memory.")}
    with monkeypatch.context() as patch:
        patch.setattr(scorer._reader.backbone, "branch_states", failing(states, exhausted, calls))
        again = scorer.shared(REQUEST)
    assert len(calls) == 2 + again.timing.branch_groups
    assert again.scores == alone.scores


def test_the_cache_of_priors_is_bounded_and_drops_what_was_used_least():
    cache = PriorCache(max_numbers=4)
    for key in (b"a", b"b"):
        cache.put(key, ((1.0, 2.0),))
    assert cache.get(b"a")
    cache.put(b"c", ((3.0,), (4.0,)))
    assert cache.get(b"b") is None
    assert cache.get(b"a")
    assert cache.get(b"c") == ((3.0,), (4.0,))
    cache.put(b"d", ((0.0,) * 5,))
    assert cache.get(b"d") is None
    cache.clear()
    assert cache.get(b"a") is None
