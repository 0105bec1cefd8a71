"""Every start-up proof of likelihood refuses what it guards against, in one clear line."""

import pytest
import torch
from models import likelihood
from models.byte_qwen import build_byte_qwen, byte_tokenizer
from models.loaded import LoadedModel
from tokenizers import normalizers
from transformers import CohereConfig, CohereForCausalLM

from semif_bento.engine.backbone import Backbone, BranchStates
from semif_bento.engine.likelihood.encoding import LikelihoodEncoder
from semif_bento.engine.likelihood.head import TokenHead
from semif_bento.engine.prefix import KeyValues, PrefixState, RecurrentStates
from semif_bento.errors import StartupError

CACHED = r"^Cached scoring differs from the untouched model by"


def _forgets_its_state(layer):
    if isinstance(layer, RecurrentStates):
        zeros = torch.zeros_like(layer.recurrent)
        return RecurrentStates(layer.conv, zeros, layer.conv_kernel_size)
    return layer


def _mixes_up_its_values(layer):
    if isinstance(layer, KeyValues):
        return KeyValues(layer.keys.roll(1, 2), layer.values)
    return layer


@pytest.mark.parametrize("attention", ["cascade", "views"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("fault", [_forgets_its_state, _mixes_up_its_values])
def test_a_cache_that_is_not_the_prefix_s_is_refused(monkeypatch, fault, dtype, attention):
    right = Backbone.prefill

    def wrong(backbone, ids):
        prefix = right(backbone, ids)
        return PrefixState(prefix.length, tuple(map(fault, prefix.layers)))

    monkeypatch.setattr(Backbone, "prefill", wrong)
    with pytest.raises(StartupError, match=CACHED):
        likelihood.assemble(build_byte_qwen(dtype), branch_attention=attention)


def test_branches_that_read_another_question_are_refused(monkeypatch):
    right = Backbone.branch_states

    def wrong(backbone, prefix, suffixes, stems=None):
        states = right(backbone, prefix, suffixes, stems)
        return BranchStates(states.hidden.roll(1, 0), states.paths)

    monkeypatch.setattr(Backbone, "branch_states", wrong)
    with pytest.raises(StartupError, match=CACHED):
        likelihood.assemble(build_byte_qwen())


def test_log_probabilities_of_other_tokens_are_refused(monkeypatch):
    right = TokenHead.log_probs
    monkeypatch.setattr(
        TokenHead, "log_probs", lambda head, hidden, rows, ids: right(head, hidden, rows, ids[::-1])
    )
    with pytest.raises(StartupError, match=r"^Our log-probabilities differ from the untouched"):
        likelihood.assemble(build_byte_qwen())


SIZES = {
    "vocab_size": 320,
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "initializer_range": 0.1,
    "pad_token_id": None,
}


def test_a_model_that_changes_its_logits_after_the_head_is_refused():
    torch.manual_seed(0)
    scaling = CohereForCausalLM(CohereConfig(**SIZES, logit_scale=0.05)).eval()
    with pytest.raises(StartupError, match=r"^Our log-probabilities differ from the untouched"):
        likelihood.assemble(LoadedModel(scaling, byte_tokenizer(), "float32"))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_weight_that_is_not_a_number_is_refused(value):
    loaded = build_byte_qwen()
    with torch.no_grad():
        loaded.model.base_model.layers[0].linear_attn.out_proj.weight.fill_(value)
    with pytest.raises(StartupError, match=CACHED):
        likelihood.assemble(loaded)


def test_a_head_that_is_not_a_number_fails_the_warm_up():
    loaded = build_byte_qwen()
    head = torch.nn.Linear(64, 320)
    with torch.no_grad():
        head.bias.fill_(float("nan"))
    loaded.model.set_output_embeddings(head)
    with pytest.raises(StartupError, match=r"^The warm-up decision does not score. The model gave"):
        likelihood.assemble(loaded)


def test_a_head_that_is_not_one_linear_layer_is_refused():
    with pytest.raises(StartupError, match="no plain linear head"):
        TokenHead(torch.nn.Identity())


def test_a_tokenizer_that_reads_across_an_edge_is_refused():
    tokenizer = byte_tokenizer()
    across = "Question: D"
    tokenizer.backend_tokenizer.normalizer = normalizers.Replace(across, across.upper())
    with pytest.raises(StartupError, match=r"differs from whole encoding|cannot carry"):
        LikelihoodEncoder(tokenizer, 2048)


def test_a_tokenizer_that_reads_across_a_whole_prompt_is_refused():
    tokenizer = byte_tokenizer()
    across = "UTC.\nQuestion: D"
    tokenizer.backend_tokenizer.normalizer = normalizers.Replace(across, across.upper())
    with pytest.raises(StartupError, match="Split encoding differs from whole encoding"):
        LikelihoodEncoder(tokenizer, 2048)


def test_a_model_without_a_chat_template_starts():
    loaded = build_byte_qwen()
    loaded.tokenizer.chat_template = None
    assert likelihood.assemble(loaded).identity.dtype == "float32"


def test_a_budget_that_does_not_hold_the_longest_prompt_is_refused():
    with pytest.raises(StartupError, match=r"^A prompt of SEMIF_MAX_TOKENS=262144 takes "):
        likelihood.assemble(build_byte_qwen(), max_tokens=262144, branch_budget_mib=16)
