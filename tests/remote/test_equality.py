"""A gateway over an engine that computes with our model answers what our own engine answers."""

import pytest
import torch
from asking import decide, request_about
from models import rows
from models.byte_qwen import build_byte_qwen
from models.scorers import assemble

from semif_bento.caller import Caller


@pytest.fixture(scope="module")
def loaded():
    return build_byte_qwen()


@pytest.fixture(scope="module")
def torch_scorer(loaded):
    return assemble(loaded)


@pytest.fixture
def computing(engines, loaded):
    """Both engines compute full-vocabulary log-probabilities with the untouched model."""

    @torch.inference_mode()
    def compute(prompts, ids):
        found = []
        for prompt in prompts:
            logits = loaded.model(input_ids=torch.tensor([prompt]), logits_to_keep=1).logits
            found.append(logits[0, -1].float().log_softmax(-1)[list(ids)].tolist())
        return found

    for engine in engines:
        engine.compute = compute
    return engines


def test_direct_results_equal_the_torch_engines(computing, gateway, torch_scorer):
    remote = gateway(*computing).engines["letters"]
    for group in rows.generate(states=12, decisions_each=1, seed=3):
        request = rows.request_of(group, diagnostics=True)
        ours = torch_scorer.direct(request).scores
        theirs = remote.direct(request, Caller()).scores
        assert (theirs.prompt_sha256, theirs.input_tokens) == (
            ours.prompt_sha256,
            ours.input_tokens,
        )
        assert (theirs.decision_id, theirs.option_ids) == (ours.decision_id, ours.option_ids)
        assert theirs.probabilities == pytest.approx(ours.probabilities, abs=1e-6)
        assert theirs.letter_mass == pytest.approx(ours.letter_mass, abs=1e-6)


def test_shared_results_equal_the_torch_engines(computing, gateway, torch_scorer):
    remote = gateway(*computing).engines["letters"]
    for group in rows.generate(states=4, decisions_each=5, seed=4):
        request = rows.request_of(group)
        ours, theirs = torch_scorer.shared(request), remote.shared(request, Caller())
        assert theirs.timing.prefix_tokens == ours.timing.prefix_tokens
        assert theirs.timing.true_suffix_tokens == ours.timing.true_suffix_tokens
        for one, other in zip(theirs.scores, ours.scores, strict=True):
            assert one.prompt_sha256 == other.prompt_sha256
            assert one.probabilities == pytest.approx(other.probabilities, abs=1e-6)
            assert one.letter_mass is None


def test_wide_decisions_equal_the_torch_engines(computing, gateway, torch_scorer):
    backend = gateway(*computing)
    options = backend.engines["letters"].most_options
    assert options == torch_scorer.most_options == 26
    ours = torch_scorer.direct(request_about("a state", options=options)).scores
    theirs = decide(backend, options=options).scores
    assert theirs.prompt_sha256 == ours.prompt_sha256
    assert theirs.probabilities == pytest.approx(ours.probabilities, abs=1e-6)
