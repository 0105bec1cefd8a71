"""Branches of one prefix end where whole prompts end, and the model handed in stays as it is."""

import pytest
import torch
from models.byte_qwen import build_byte_qwen
from models.loaded import build_tiny_qwen
from transformers import LlamaConfig, LlamaForCausalLM

from semif_bento.engine.attention import BranchContext
from semif_bento.engine.backbone import Backbone, choose_branch_attention
from semif_bento.engine.delta import BranchedDeltaNet, kernels_in_use
from semif_bento.engine.layout import BranchLayout
from semif_bento.engine.prefix import PrefixState, new_cache
from semif_bento.engine.tolerance import relative_distance

ATTENTIONS = ("cascade", "views")
GROUPS = ([1], [2], [1, 1, 1], [1, 3, 30, 31, 33], [64, 65, 130])
PREFIXES = (1, 2, 3, 4, 63, 64, 65, 150)  # around the convolution's 4 and the recurrence's 64


def _ids(count, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(256, (count,), generator=generator).tolist()


@pytest.fixture(autouse=True)
def _without_gradients():
    with torch.inference_mode():
        yield


@pytest.fixture(scope="module")
def byte_qwen():
    return build_byte_qwen()


@pytest.fixture(scope="module", params=ATTENTIONS)
def backbone(request, byte_qwen):
    return Backbone(byte_qwen.model, request.param)


@pytest.mark.parametrize("prefix_tokens", PREFIXES)
def test_branches_end_in_the_hidden_states_of_whole_prompts(backbone, prefix_tokens):
    prefix_ids = _ids(prefix_tokens, 1)
    prefix = backbone.prefill(prefix_ids)
    for lengths in GROUPS:
        suffixes = [_ids(length, 10 + i) for i, length in enumerate(lengths)]
        found = backbone.branches(prefix, suffixes)
        whole = torch.cat([backbone.whole([*prefix_ids, *suffix]) for suffix in suffixes])
        assert relative_distance(found, whole) < 1e-4


def test_a_prefix_is_the_same_after_any_branches(backbone):
    prefix_ids, suffixes = _ids(20, 1), [_ids(5, 2), _ids(9, 3)]
    prefix = backbone.prefill(prefix_ids)
    first = backbone.branches(prefix, suffixes)
    backbone.branches(prefix, [_ids(40, 4)])
    assert torch.equal(backbone.branches(prefix, suffixes), first)
    assert torch.equal(backbone.branches(backbone.prefill(prefix_ids), suffixes), first)


def test_a_branch_is_what_the_untouched_model_computes(backbone, byte_qwen):
    ids = _ids(50, 5)
    native = byte_qwen.model.base_model(input_ids=torch.tensor([ids]), use_cache=False)
    found = backbone.branches(backbone.prefill(ids[:30]), [ids[30:]])
    assert relative_distance(found, native.last_hidden_state[:, -1]) < 1e-4


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("attention", ATTENTIONS)
def test_the_model_handed_in_gives_the_same_bits_as_before(dtype, attention):
    model = build_byte_qwen(dtype).model
    ids = torch.tensor([_ids(70, 6)])
    before, kinds = model(input_ids=ids).logits, [type(m) for m in model.modules()]
    backbone = Backbone(model, attention)
    backbone.branches(backbone.prefill(_ids(9, 1)), [_ids(3, 2), _ids(4, 3)])
    assert torch.equal(model(input_ids=ids).logits, before)
    assert [type(m) for m in model.modules()] == kinds
    assert model.config._attn_implementation == "sdpa"


@pytest.mark.parametrize("attention", ATTENTIONS)
def test_no_weight_is_copied(byte_qwen, attention):
    backbone = Backbone(byte_qwen.model, attention)
    given = {id(parameter) for parameter in byte_qwen.model.parameters()}
    assert {id(p) for p in backbone._layers.parameters()} <= given


def _delta_layer(byte_qwen):
    return byte_qwen.model.base_model.layers[0].linear_attn


def test_the_delta_layer_on_branches_equals_whole_sequences(byte_qwen):
    layer = _delta_layer(byte_qwen)
    branched = BranchedDeltaNet.around(layer)
    for prefix_tokens in PREFIXES:
        for lengths in GROUPS:
            torch.manual_seed(prefix_tokens)
            prefix = torch.randn(1, prefix_tokens, 64)
            suffixes = torch.randn(1, sum(lengths), 64)
            cache = new_cache(byte_qwen.model.config)
            branched(prefix, cache=cache)
            state = PrefixState(prefix_tokens, (PrefixState.of(_only(cache), 1).layers[0],))
            layout = BranchLayout.of(lengths, prefix_tokens, torch.device("cpu"))
            found = branched(
                suffixes,
                cache=state.branches(1, with_prefix=False),
                branches=BranchContext(layout, {}, {}),
            )
            whole = [
                layer(torch.cat([prefix, suffix], dim=1))[:, prefix_tokens:]
                for suffix in suffixes.split(lengths, dim=1)
            ]
            assert (found - torch.cat(whole, dim=1)).abs().max() < 1e-4


def _only(cache):
    cache.layers = cache.layers[:1]
    return cache


def test_the_delta_layer_without_branches_is_the_parent_s_to_the_bit(byte_qwen):
    layer = _delta_layer(byte_qwen)
    given = torch.randn(1, 70, 64)
    assert torch.equal(BranchedDeltaNet.around(layer)(given), layer(given))


def test_the_delta_layer_refuses_branches_without_a_prefix(byte_qwen):
    layout = BranchLayout.of([3], 0, torch.device("cpu"))
    with pytest.raises(ValueError, match="need the prefix's"):
        BranchedDeltaNet.around(_delta_layer(byte_qwen))(
            torch.randn(1, 3, 64), branches=BranchContext(layout, {}, {})
        )


def test_the_kernels_of_linear_attention_are_named(byte_qwen):
    assert kernels_in_use(byte_qwen.model) == "torch"
    assert kernels_in_use(torch.nn.Linear(1, 1)) == "none"


def _llama(**changes):
    sizes = {"vocab_size": 300, "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1}
    return LlamaForCausalLM(LlamaConfig(**sizes, num_attention_heads=2, **changes))


def test_cascade_is_chosen_where_attention_is_plain_and_views_elsewhere():
    assert choose_branch_attention(_llama()) == "cascade"
    assert choose_branch_attention(_llama(), "views") == "views"
    assert choose_branch_attention(build_tiny_qwen(vocab_size=300)) == "cascade"
    for special in ("sliding_window", "attn_logit_softcapping", "attention_chunk_size"):
        assert choose_branch_attention(_llama(**{special: 8})) == "views"
