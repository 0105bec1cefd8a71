"""A logit that is not a finite number fails its request: no number goes out, nothing is kept."""

import math
from contextlib import contextmanager

import pytest
import torch
from models.faults import RecordingDevice, narrow
from models.rows import generate, request_of
from models.small import load_small_scorer

from semif_bento.decisions import Decision, ScoreRequest
from semif_bento.engine.memory import MemoryGuard
from semif_bento.errors import ScoringFailed

SHARED = request_of(generate(1, 6, seed=3)[0])
DIRECT = ScoreRequest(SHARED.state, SHARED.decisions[:1])
REQUESTS = {"direct": DIRECT, "shared": SHARED}
BAD = pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf], ids=["nan", "inf", "-inf"])
MODES = pytest.mark.parametrize("mode", REQUESTS)


@pytest.fixture
def device():
    return RecordingDevice()


@pytest.fixture
def scorer(device):
    small_scorer = load_small_scorer()
    narrow(small_scorer, SHARED, branches=2)
    small_scorer.forget_prefixes()
    small_scorer.guard = MemoryGuard(device, small_scorer._prefix_cache)
    return small_scorer


@contextmanager
def damaged(tensor, place, bad):
    """A weight with one bad value, as a flipped bit or a broken kernel leaves it."""
    with torch.inference_mode():
        before = tensor[place].clone()
        tensor[place] = bad
        try:
            yield
        finally:
            tensor[place] = before


def refuse(scorer, mode, request=None):
    with pytest.raises(ScoringFailed) as caught:
        getattr(scorer, mode)(request or REQUESTS[mode])
    assert (caught.value.status, caught.value.code) == (500, "scoring_failed")
    assert caught.value.__context__ is None


@MODES
@BAD
def test_a_bad_weight_fails_the_request_and_the_next_one_is_right(scorer, device, mode, bad):
    before = getattr(scorer, mode)(REQUESTS[mode]).scores
    scorer.forget_prefixes()
    with damaged(scorer._backbone._layers.norm.weight, 0, bad):
        refuse(scorer, mode)
    assert len(device.alive_at_release) == 1
    assert scorer.status().prefix_cache.entries == 0
    assert getattr(scorer, mode)(REQUESTS[mode]).scores == before


@MODES
@BAD
def test_one_bad_letter_fails_the_request(scorer, mode, bad):
    with damaged(scorer._head._weight, (1, 0), bad):  # B, which every decision declares
        refuse(scorer, mode)
    assert scorer.status().prefix_cache.entries == 0


@BAD
def test_a_bad_branch_in_the_last_group_fails_all_and_its_state_is_not_kept(
    scorer, qwen_tokenizer, bad
):
    word = " elephant"
    token = qwen_tokenizer.encode(word)[0]
    longest = Decision("long", f"Is there a{word}? " * 40, SHARED.decisions[0].options)
    request = ScoreRequest(SHARED.state, (*SHARED.decisions[:5], longest))
    narrow(scorer, request, branches=1)
    with damaged(scorer._backbone._layers.embed_tokens.weight, token, bad):
        refuse(scorer, "shared", request)
        assert scorer.status().prefix_cache.entries == 0
        sound = scorer.shared(SHARED)  # none of its branches touches the bad row
    assert scorer.shared(SHARED).scores == sound.scores


@MODES
@BAD
def test_a_bad_word_outside_the_letters_fails_diagnostics_alone(scorer, mode, bad):
    asked = REQUESTS[mode]
    diagnosed = ScoreRequest(asked.state, asked.decisions, diagnostics=True)
    before = getattr(scorer, mode)(asked).scores
    with damaged(scorer._head._head.weight, 5000, bad):
        assert getattr(scorer, mode)(asked).scores == before
        refuse(scorer, mode, diagnosed)


@BAD
def test_a_cached_state_stays_and_stays_right(scorer, bad):
    before = scorer.shared(SHARED)
    with damaged(scorer._head._weight, (1, 0), bad):
        refuse(scorer, "shared")
    after = scorer.shared(SHARED)
    assert after.timing.cache_hit
    assert after.scores == before.scores
