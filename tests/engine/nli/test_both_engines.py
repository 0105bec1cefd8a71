"""Both engines in one process: one device, one cache, one guard, and each its own answers."""

from dataclasses import replace

import pytest
from models.byte_qwen import build_byte_qwen, byte_tokenizer
from models.loaded import save
from models.nli import save_nli_model
from models.scorers import settings_for

from semif_bento.api.asking import Asker
from semif_bento.decisions import Decision, Option, ScoreRequest
from semif_bento.engine.startup import open_backend, open_classifier, open_scorer
from semif_bento.entailment import Pair
from semif_bento.errors import NotFound
from semif_bento.serving.scheduler import Scheduler

SMALL = {"vocab_size": 320, "hidden_size": 64, "intermediate_size": 64}
STATE = "The shop opens at nine. " * 20
DECISION = Decision("d", "Is it open?", (Option("y", "yes"), Option("n", "no")))
REQUEST = ScoreRequest(STATE, (DECISION, Decision("e", "Is it shut?", DECISION.options)))
PAIRS = [Pair(STATE, "It is open."), Pair(STATE, "It is shut.")]


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    home = tmp_path_factory.mktemp("models")
    letter = save(build_byte_qwen(), home / "letter")
    nli = save_nli_model(home / "nli", tokenizer=byte_tokenizer(), **SMALL)
    both = {"model": str(letter), "nli_model": str(nli), "nli_revision": "test"}
    return settings_for("float32", nli_dtype="float32", **both)


@pytest.fixture(scope="module")
def backend(settings):
    return open_backend(settings)


def test_each_answers_as_it_does_alone(backend, settings):
    letters, nli = backend.engines["letters"], backend.engines["nli"].classifier
    assert letters.shared(REQUEST).scores == open_scorer(settings).shared(REQUEST).scores
    alone, _ = open_classifier(settings)
    assert nli.classify(PAIRS).rows == alone.classify(PAIRS).rows


def test_they_share_one_cache_and_find_what_the_other_did_not_push_out(backend):
    letters, nli = backend.engines["letters"], backend.engines["nli"].classifier
    for _ in range(2):
        shared, classified = letters.shared(REQUEST), nli.classify(PAIRS)
    assert shared.timing.cache_hit
    assert classified.timing.cached_tokens > 0
    assert letters.status().prefix_cache == nli.status().prefix_cache
    assert letters.guard is nli.guard


def test_the_process_is_known_by_its_letter_model_and_has_one_slot(backend, settings):
    assert backend.identity.source == settings.model
    assert backend.slots == 1


def test_either_may_be_absent_and_says_how_to_get_it(settings):
    letter_only = open_backend(replace(settings, nli_model=None, nli_revision=None))
    assert list(letter_only.engines) == ["letters", "likelihood"]
    with pytest.raises(NotFound, match="SEMIF_NLI_MODEL enables it"):
        asker_of(letter_only).engine("nli")
    nli_only = open_backend(replace(settings, model="none", revision=None))
    assert nli_only.identity.source == settings.nli_model
    with pytest.raises(NotFound, match="set SEMIF_MODEL, or ask with engine nli"):
        asker_of(nli_only).engine("letters")


def asker_of(backend):
    scheduler = Scheduler(max_waiting=0, timeout_s=1)
    scheduler.open(lambda: backend)
    scheduler.close()
    return Asker(scheduler, {})
