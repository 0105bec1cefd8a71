"""Load the causal model, build the letter engine around it, and prove it; knows nothing of HTTP."""

import logging
from dataclasses import dataclass

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from semif_bento.engine.assembly import announce, identify, measure_budget
from semif_bento.engine.backbone import Backbone, choose_branch_attention
from semif_bento.engine.delta import kernels_in_use
from semif_bento.engine.device import device_name
from semif_bento.engine.letters.encoding import Encoder
from semif_bento.engine.letters.head import SlotHead
from semif_bento.engine.letters.proofs import prove_backbone, prove_model
from semif_bento.engine.letters.scorer import TorchScorer
from semif_bento.engine.loading import load_model, model_directory
from semif_bento.engine.opening import Opening
from semif_bento.engine.sources import ModelSource, locate
from semif_bento.engine.vocabulary import load_tokenizer
from semif_bento.engine.workspace import Workspace
from semif_bento.settings import Settings

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """An untouched model, its tokenizer, and where both come from."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerFast
    source: ModelSource


def load_weights(opening: Opening) -> LoadedModel:
    """Load the causal model, once for all engines that read it.

    Raises:
        StartupError: its files or its weights are not right.
    """
    return opening.once("causal model", lambda: load_causal(opening.settings))


def open_engine(opening: Opening) -> TorchScorer:
    """Build, prove and warm up the letter engine.

    Raises:
        StartupError: as `assemble_scorer` raises it.
    """
    loaded = load_weights(opening)
    return assemble_scorer(
        loaded.model, loaded.tokenizer, loaded.source, opening.settings, opening.workspace
    )


def load_causal(settings: Settings) -> LoadedModel:
    """Load the causal model.

    Raises:
        StartupError: its files or its weights are not right.
    """
    source = locate(settings.model, settings.revision)
    logger.info("loading %s at %s", source.name, source.revision)
    directory = model_directory(source, settings.dtype, settings.cache_dir)
    tokenizer = load_tokenizer(directory)
    return LoadedModel(load_model(directory, settings.dtype, settings.device), tokenizer, source)


@torch.inference_mode()
def assemble_scorer(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    source: ModelSource,
    settings: Settings,
    workspace: Workspace | None = None,
) -> TorchScorer:
    """Build a scorer around a loaded model and run every start-up proof on it.

    The model itself stays untouched; the scorer's layers share its parameters.

    Args:
        model: in evaluation mode on the configured device.
        tokenizer: the model's own.
        source: where both come from.
        settings: limits and budgets.
        workspace: shared with other engines; one of its own by default.

    Raises:
        StartupError: a proof fails, or the budget does not hold the largest legal prompt.
    """
    workspace = workspace or Workspace.of(settings)
    request_tokens = settings.max_tokens * settings.max_decisions
    model_head = model.get_output_embeddings()
    head_rows = getattr(model_head, "out_features", None)
    encoder = Encoder(tokenizer, settings.max_tokens, request_tokens, head_rows)
    backbone = Backbone(model, choose_branch_attention(model, settings.branch_attention))
    head = SlotHead(model_head, encoder.slot_ids, encoder.wide_slots.ids)
    prove_model(model, backbone, head, encoder)
    prove_backbone(backbone, encoder)
    budget = measure_budget(backbone, settings, workspace, settings.max_decisions)
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
