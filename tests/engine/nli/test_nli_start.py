"""What an NLI checkpoint must be before it is served: every guard of the start fires."""

import shutil

import pytest
import torch
from models.byte_qwen import byte_tokenizer
from models.nli import change_config, open_nli, save_nli_model
from safetensors.torch import load_file, save_file

from semif_bento.engine.backbone import Backbone
from semif_bento.engine.nli import checkpoint as checkpoints
from semif_bento.engine.nli import proofs
from semif_bento.engine.prefix import KeepingKeyValues, KeepingStates, ReadOnlyStates
from semif_bento.errors import StartupError

SMALL = {"vocab_size": 320, "hidden_size": 64, "intermediate_size": 64}
TEXT_PART = "model.language_model."


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    # hidden_size is the text part's; the vision tower's output stays as it is, nobody reads it
    directory = tmp_path_factory.mktemp("nli") / "whole"
    return save_nli_model(directory, tokenizer=byte_tokenizer(), **SMALL)


@pytest.fixture
def directory(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "nli")


def refusal(directory, **changes):
    with pytest.raises(StartupError) as refused:
        open_nli(directory, **changes)
    [line] = str(refused.value).splitlines()
    return line


def change_weights(directory, change):
    weights = load_file(directory / "model.safetensors")
    change(weights)
    save_file(weights, directory / "model.safetensors", metadata={"format": "pt"})


def test_the_whole_checkpoint_starts(directory):
    classifier = open_nli(directory)
    assert classifier.identity.source == str(directory)
    assert classifier.template == "Premise: {premise}\nHypothesis: {hypothesis}"


@pytest.mark.parametrize(
    "labels",
    [
        ("entailment", "contradiction", "neutral"),
        ("contradiction", "neutral", "entailment"),
        ("CONTRADICTION", "ENTAILMENT", "NEUTRAL"),
        ("entailment", "not_entailment"),
    ],
)
def test_labels_in_another_order_are_refused_by_name(directory, labels):
    change_config(directory, id2label=dict(enumerate(labels)))
    line = refusal(directory)
    assert f"labels are {', '.join(labels)}" in line
    assert "contradiction, entailment, neutral in this order" in line


def test_a_missing_head_is_refused_and_named(directory):
    change_weights(directory, lambda weights: weights.pop("score.weight"))
    assert refusal(directory) == "The checkpoint did not load whole: 1 missing (score.weight)."


def test_a_head_with_a_bias_is_refused(directory):
    change_weights(directory, lambda weights: weights.update({"score.bias": torch.zeros(3)}))
    assert "1 unexpected (score.bias)" in refusal(directory)


def test_an_mlp_head_is_refused(directory):
    change_config(directory, openjev_mlp_head=True)
    assert "openjev_mlp_head" in refusal(directory)


def test_a_missing_weight_of_the_layers_is_refused(directory):
    change_weights(directory, lambda weights: weights.pop(f"{TEXT_PART}norm.weight"))
    assert "1 missing (model.norm.weight)" in refusal(directory)


def test_a_head_that_is_no_number_is_refused(directory):
    change_weights(directory, lambda weights: weights["score.weight"].fill_(float("nan")))
    assert "differs from the untouched NLI model by nan" in refusal(directory)


def test_a_configuration_without_a_template_is_refused(directory):
    change_config(directory, nli_template=None)
    assert refusal(directory) == "The NLI model's configuration names no nli_template."


@pytest.mark.parametrize(
    "template",
    ["{hypothesis}: {premise}", "{premise}: x", "{premise} {premise}: {hypothesis}", "{}", ""],
)
def test_a_template_without_a_premise_and_then_a_hypothesis_is_refused(directory, template):
    change_config(directory, nli_template=template)
    assert "nli_template must hold {premise} once and then {hypothesis} once" in refusal(directory)


@pytest.mark.parametrize("missing", ["tokenizer.json", "tokenizer_config.json"])
def test_missing_tokenizer_files_are_named_with_the_way_out(directory, missing):
    (directory / missing).unlink()
    assert refusal(directory) == (
        f"The NLI model lacks {missing}; `semif-bento overlay` makes a directory that takes them "
        "from the base model."
    )


def test_a_tokenizer_without_a_chat_template_will_do(directory):
    (directory / "chat_template.jinja").unlink()
    assert open_nli(directory)


def test_a_checkpoint_of_a_language_model_is_refused(directory):
    change_config(directory, architectures=["Qwen3_5ForCausalLM"], id2label=None, label2id=None)
    assert "labels are LABEL_0, LABEL_1" in refusal(directory)


def test_a_sub_folder_is_served_and_named(directory, tmp_path):
    shutil.move(directory, tmp_path / "all" / "v5")
    classifier = open_nli(tmp_path / "all", nli_subfolder="v5")
    assert classifier.identity.source == f"{tmp_path / 'all'}/v5"
    assert "no folder 'v6'" in refusal(tmp_path / "all", nli_subfolder="v6")


def test_a_budget_too_small_for_the_longest_input_is_refused(directory):
    assert "SEMIF_MAX_TOKENS=262144" in refusal(directory, max_tokens=262144, branch_budget_mib=16)


def test_a_pad_token_is_found_where_the_configuration_has_none(saved):
    loaded = checkpoints.load_checkpoint(saved, "float32", "cpu")
    assert loaded.model.config.get_text_config().pad_token_id == loaded.tokenizer.pad_token_id


def test_pooling_at_another_place_is_refused(directory, monkeypatch):
    original = Backbone.wholes
    monkeypatch.setattr(
        Backbone, "wholes", lambda self, rows: original(self, [row[:-1] for row in rows])
    )
    assert refusal(directory).startswith("Our forward differs from the untouched NLI model by")


def test_padding_that_changes_an_answer_is_refused(directory, monkeypatch):
    original = proofs._logits

    def with_another_pad(checkpoint, rows):
        config = checkpoint.model.config.get_text_config()
        kept, config.pad_token_id = config.pad_token_id, 7
        found = original(checkpoint, rows)
        config.pad_token_id = kept
        return found if len(rows) == 1 else found.roll(1, 0)

    monkeypatch.setattr(proofs, "_logits", with_another_pad)
    assert refusal(directory).startswith("A padded batch differs")


@pytest.mark.parametrize(
    ("mode", "kind", "method"),
    [
        ("views", ReadOnlyStates, "update_conv_state"),
        ("views", KeepingStates, "update_conv_state"),
        ("views", KeepingStates, "update_recurrent_state"),
        ("cascade", KeepingStates, "update_conv_state"),
        ("cascade", KeepingStates, "update_recurrent_state"),
    ],
)
def test_a_state_that_is_lost_on_the_way_is_refused(directory, monkeypatch, mode, kind, method):
    original = getattr(kind, method)

    def lose(self, states, *args, **kwargs):
        return original(self, torch.zeros_like(states), *args, **kwargs)

    monkeypatch.setattr(kind, method, lose)
    assert refusal(directory, branch_attention=mode).startswith("Sharing")


@pytest.mark.parametrize("mode", ["cascade", "views"])
def test_keys_that_are_lost_on_the_way_are_refused(directory, monkeypatch, mode):
    original = KeepingKeyValues.update

    def lose(self, keys, values, *args, **kwargs):
        found = original(self, keys, values)
        self.keys = torch.zeros_like(self.keys)
        return found

    monkeypatch.setattr(KeepingKeyValues, "update", lose)
    assert refusal(directory, branch_attention=mode).startswith("Sharing an instruction differs")
