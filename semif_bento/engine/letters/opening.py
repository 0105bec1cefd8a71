"""Build the letter engine around the causal model, and prove it; knows nothing of HTTP."""

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from semif_bento.engine.assembly import announce, fix_budget, identify
from semif_bento.engine.causal import Layers, LoadedModel, layers_once, load_once, make_layers
from semif_bento.engine.delta import kernels_in_use
from semif_bento.engine.device import device_name
from semif_bento.engine.letters.encoding import Encoder
from semif_bento.engine.letters.head import SlotHead
from semif_bento.engine.letters.proofs import prove_backbone, prove_model
from semif_bento.engine.letters.scorer import TorchScorer
from semif_bento.engine.opening import Opening
from semif_bento.engine.sources import ModelSource
from semif_bento.engine.vocabulary import require_chat_template
from semif_bento.engine.workspace import Workspace
from semif_bento.settings import Settings


def load_weights(opening: Opening) -> LoadedModel:
    """Load the causal model, once for all engines that read it.

    Raises:
        StartupError: its files or its weights are not right.
    """
    return load_once(opening)


def open_engine(opening: Opening) -> TorchScorer:
    """Build, prove and warm up the letter engine.

    Raises:
        EngineUnfit: the model has no chat template, which the prompt needs.
        StartupError: as `assemble_scorer` raises it.
    """
    loaded = load_once(opening)
    require_chat_template(loaded.tokenizer)
    return assemble_scorer(
        loaded.model,
        loaded.tokenizer,
        loaded.source,
        opening.settings,
        opening.workspace,
        layers_once(opening),
    )


@torch.inference_mode()
def assemble_scorer(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    source: ModelSource,
    settings: Settings,
    workspace: Workspace | None = None,
    layers: Layers | None = None,
) -> TorchScorer:
    """Build a scorer around a loaded model and run every start-up proof on it.

    The model itself stays untouched; the scorer's layers share its parameters.

    Args:
        model: in evaluation mode on the configured device.
        tokenizer: the model's own.
        source: where both come from.
        settings: limits and budgets.
        workspace: shared with other engines; one of its own by default.
        layers: the model's, shared with other engines; of its own by default.

    Raises:
        StartupError: a proof fails, or the budget does not hold the largest legal prompt.
    """
    workspace = workspace or Workspace.of(settings)
    request_tokens = settings.max_tokens * settings.max_decisions
    model_head = model.get_output_embeddings()
    head_rows = getattr(model_head, "out_features", None)
    encoder = Encoder(tokenizer, settings.max_tokens, request_tokens, head_rows)
    layers = layers or make_layers(model, settings)
    backbone = layers.backbone
    head = SlotHead(model_head, encoder.slot_ids, encoder.wide_slots.ids)
    prove_model(model, backbone, head, encoder)
    prove_backbone(backbone, encoder)
    budget = fix_budget(layers.cost, settings, workspace, settings.max_decisions)
    scorer = TorchScorer(
        identity=identify(model, source, settings.dtype),
        encoder=encoder,
        backbone=backbone,
        head=head,
        budget=budget,
        workspace=workspace,
        device_name=device_name(settings),
        linear_attention_kernels=kernels_in_use(model),
    )
    workspace.rest()
    announce("letters", backbone, budget)
    return scorer
