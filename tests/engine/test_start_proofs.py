"""Every start-up proof of the model refuses what it guards against, in one clear line."""

import json
import shutil

import pytest
import torch
from models.byte_qwen import build_byte_qwen, byte_tokenizer
from models.loaded import LoadedModel, save
from models.scorers import assemble, settings_for
from safetensors.torch import load_file, save_file
from transformers import CohereConfig, CohereForCausalLM, Gemma2Config, Gemma2ForCausalLM

from semif_bento.engine.backbone import Backbone
from semif_bento.engine.device import check_device
from semif_bento.engine.loading import load_model
from semif_bento.engine.prefix import KeyValues, PrefixState, RecurrentStates
from semif_bento.engine.startup import open_scorer
from semif_bento.errors import StartupError

NORM = "model.norm.weight"
PROJECTION = "model.layers.0.linear_attn.out_proj.weight"


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return save(build_byte_qwen(), tmp_path_factory.mktemp("model") / "whole")


@pytest.fixture
def directory(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "model")


def _change_weights(directory, change):
    weights = load_file(directory / "model.safetensors")
    change(weights)
    save_file(weights, directory / "model.safetensors", metadata={"format": "pt"})


def _open(directory, **changes):
    return open_scorer(settings_for("float32", model=str(directory), **changes))


def _refusal(directory, **changes):
    with pytest.raises(StartupError) as refused:
        _open(directory, **changes)
    [line] = str(refused.value).splitlines()
    return line


def test_the_whole_directory_starts(directory):
    assert _open(directory).identity.dtype == "float32"


def test_a_start_says_what_it_is_at(directory, caplog):
    with caplog.at_level("INFO", "semif_bento"):
        _open(directory)
    phases = [record.getMessage() for record in caplog.records]
    starts = [
        *("loading ", "proving the answer slots", "proving shared states, 1 of 2"),
        *("proving shared states, 2 of 2", "measuring the memory of 5 groups", "ready for "),
    ]
    assert len(phases) == len(starts)
    assert all(line.startswith(start) for line, start in zip(phases, starts, strict=True))


def test_a_missing_weight_is_refused_and_named(directory):
    _change_weights(directory, lambda weights: weights.pop(NORM))
    assert _refusal(directory) == f"The checkpoint did not load whole: 1 missing ({NORM})."


def test_an_unexpected_weight_is_refused_and_named(directory):
    _change_weights(directory, lambda weights: weights.update({"model.extra": torch.zeros(3)}))
    assert _refusal(directory) == "The checkpoint did not load whole: 1 unexpected (model.extra)."


def test_parts_of_a_multimodal_checkpoint_that_a_text_model_leaves_out_are_no_fault(directory):
    _change_weights(directory, lambda weights: weights.update({"mtp.layers.0": torch.zeros(3)}))
    assert _open(directory)


def test_a_weight_of_another_shape_is_refused(directory):
    _change_weights(directory, lambda weights: weights.update({NORM: torch.zeros(65)}))
    line = _refusal(directory)
    assert "mismatched" in line or "cannot be loaded" in line


def test_an_absent_weights_file_is_refused(directory):
    (directory / "model.safetensors").unlink()
    assert _refusal(directory).startswith("The model cannot be loaded: ")


def test_a_cut_weights_file_is_refused(directory):
    whole = (directory / "model.safetensors").read_bytes()
    (directory / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    assert _refusal(directory).startswith("The model cannot be loaded: ")


def test_an_absent_tokenizer_is_refused(directory):
    (directory / "tokenizer.json").unlink()
    assert _refusal(directory).startswith("The tokenizer cannot be loaded: ")


def test_an_absent_chat_template_is_refused(directory):
    (directory / "chat_template.jinja").unlink()
    assert (
        _refusal(directory) == "The tokenizer has no chat template; the letters' prompt needs one."
    )


def test_an_unknown_architecture_is_refused(directory):
    config = json.loads((directory / "config.json").read_text())
    (directory / "config.json").write_text(json.dumps(config | {"model_type": "unheard_of"}))
    assert _refusal(directory).startswith("The model cannot be loaded: ")


def test_weights_that_stay_on_another_device_are_refused(directory, monkeypatch):
    monkeypatch.setattr(torch.nn.Module, "to", lambda model, device: model)
    with pytest.raises(StartupError, match=r"sits on cpu, not on meta\.$"):
        load_model(directory, "float32", "meta")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_weight_that_is_not_a_number_fails_the_warm_up(directory, value):
    _change_weights(directory, lambda weights: weights[PROJECTION].fill_(value))
    assert _refusal(directory) == (
        "The warm-up decision does not score. The model gave a logit that is not a finite number."
    )


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
    scaling = CohereForCausalLM(CohereConfig(**SIZES, logit_scale=0.25)).eval()
    with pytest.raises(StartupError, match=r"^Our scores differ from the model's own by"):
        assemble(LoadedModel(scaling, byte_tokenizer(), "float32"))


def test_an_architecture_without_the_attention_needed_is_refused_and_named():
    capped = Gemma2ForCausalLM(Gemma2Config(**SIZES, head_dim=16)).eval()
    with pytest.raises(StartupError, match=r"^Gemma2ForCausalLM has no scaled-dot-product"):
        assemble(LoadedModel(capped, byte_tokenizer(), "float32"))


def _forgets_its_state(prefix):
    return tuple(
        RecurrentStates(layer.conv, torch.zeros_like(layer.recurrent), layer.conv_kernel_size)
        if isinstance(layer, RecurrentStates)
        else layer
        for layer in prefix.layers
    )


def _forgets_its_convolution(prefix):
    return tuple(
        RecurrentStates(torch.zeros_like(layer.conv), layer.recurrent, layer.conv_kernel_size)
        if isinstance(layer, RecurrentStates)
        else layer
        for layer in prefix.layers
    )


def _mixes_up_its_values(prefix):
    return tuple(
        KeyValues(layer.keys.roll(1, 2), layer.values) if isinstance(layer, KeyValues) else layer
        for layer in prefix.layers
    )


@pytest.mark.parametrize("attention", ["cascade", "views"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    "fault", [_forgets_its_state, _forgets_its_convolution, _mixes_up_its_values]
)
def test_a_cache_that_is_not_the_prefix_s_is_refused(monkeypatch, fault, dtype, attention):
    loaded = build_byte_qwen(dtype)
    right = Backbone.prefill

    def wrong(backbone, ids):
        prefix = right(backbone, ids)
        return PrefixState(prefix.length, fault(prefix))

    monkeypatch.setattr(Backbone, "prefill", wrong)
    with pytest.raises(StartupError, match=r"^Cached scoring differs from fresh scoring by"):
        assemble(loaded, branch_attention=attention)


@pytest.mark.parametrize("attention", ["cascade", "views"])
def test_a_prefix_of_other_tokens_is_refused(monkeypatch, attention):
    right = Backbone.prefill
    monkeypatch.setattr(Backbone, "prefill", lambda self, ids: right(self, ids[::-1]))
    with pytest.raises(StartupError, match=r"^Cached scoring differs"):
        assemble(build_byte_qwen(), branch_attention=attention)


def test_positions_that_start_anew_in_a_branch_are_refused(monkeypatch):
    right = Backbone.prefill

    def wrong(backbone, ids):
        return PrefixState(0, right(backbone, ids).layers)

    monkeypatch.setattr(Backbone, "prefill", wrong)
    with pytest.raises(StartupError, match=r"^Cached scoring differs"):
        assemble(build_byte_qwen())


def test_a_budget_that_does_not_hold_the_longest_prompt_is_refused_with_both_figures():
    with pytest.raises(StartupError) as refused:
        assemble(build_byte_qwen(), max_tokens=262144, branch_budget_mib=16)
    line = str(refused.value)
    assert line.startswith("A prompt of SEMIF_MAX_TOKENS=262144 takes ")
    assert "branches is 16 MiB" in line


def test_cuda_that_is_asked_for_and_absent_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(StartupError, match=r"^SEMIF_DEVICE=cuda, but torch sees no CUDA device"):
        open_scorer(settings_for("bfloat16", device="cuda"))


def test_the_cpu_is_never_taken_in_place_of_a_missing_card(directory, monkeypatch, reached):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert "no CUDA device" in _refusal(directory, device="cuda")
    assert reached == []


def _card(monkeypatch, capability, kernels):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    monkeypatch.setattr(torch.cuda, "get_arch_list", lambda: kernels)
    return settings_for("bfloat16", device="cuda")


@pytest.mark.parametrize("capability", [(12, 0), (7, 5), (9, 0), (8, 0)])
def test_a_card_without_kernels_in_torch_is_refused_and_named(monkeypatch, capability):
    settings = _card(monkeypatch, capability, ["sm_86", "sm_100", "compute_90"])
    major, minor = capability
    with pytest.raises(StartupError, match=rf"no kernels for sm_{major}{minor}; it has sm_86, sm_"):
        check_device(settings)


@pytest.mark.parametrize("capability", [(8, 6), (8, 9), (10, 0), (10, 3)])
def test_a_card_whose_kernels_torch_has_is_taken(monkeypatch, capability):
    check_device(_card(monkeypatch, capability, ["sm_86", "sm_100", "compute_90"]))
