"""Build an engine around a loaded model, and prove it; knows nothing of files or HTTP."""

import logging

import torch
import transformers
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from semif_bento.decisions import ModelIdentity
from semif_bento.engine.backbone import Backbone, choose_branch_attention
from semif_bento.engine.budget import BranchBudget
from semif_bento.engine.cost import measure_cost
from semif_bento.engine.delta import kernels_in_use
from semif_bento.engine.device import device_name
from semif_bento.engine.letters.encoding import Encoder
from semif_bento.engine.letters.head import SlotHead
from semif_bento.engine.letters.proofs import prove_backbone, prove_model
from semif_bento.engine.letters.scorer import TorchScorer
from semif_bento.engine.memory import MIB
from semif_bento.engine.nli.checkpoint import NliCheckpoint
from semif_bento.engine.nli.classifier import TorchClassifier
from semif_bento.engine.nli.encoding import PairEncoder
from semif_bento.engine.nli.proofs import prove_classifier
from semif_bento.engine.sources import ModelSource
from semif_bento.engine.workspace import Workspace
from semif_bento.settings import Settings

logger = logging.getLogger(__name__)


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
    budget = _budget(backbone, settings, workspace, settings.max_decisions)
    scorer = TorchScorer(
        identity=identity_of(model, source, settings.dtype),
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


@torch.inference_mode()
def assemble_classifier(
    checkpoint: NliCheckpoint,
    source: ModelSource,
    settings: Settings,
    workspace: Workspace | None = None,
) -> TorchClassifier:
    """Build a classifier around a loaded checkpoint and run every start-up proof on it.

    Args:
        checkpoint: whole, on the configured device; it stays untouched.
        source: where it comes from.
        settings: limits and budgets.
        workspace: shared with other engines; one of its own by default.

    Raises:
        StartupError: a proof fails, or the budget does not hold the largest legal input.
    """
    workspace = workspace or Workspace.of(settings)
    model = checkpoint.model
    vocabulary = int(model.config.get_text_config().vocab_size)
    encoder = PairEncoder(
        checkpoint.tokenizer, checkpoint.template, settings.max_tokens, vocabulary
    )
    backbone = Backbone(model, choose_branch_attention(model, settings.branch_attention))
    prove_classifier(checkpoint, backbone, encoder)
    budget = _budget(backbone, settings, workspace, None)
    classifier = TorchClassifier(
        identity=identity_of(model, source, settings.nli_dtype),
        encoder=encoder,
        backbone=backbone,
        head=checkpoint.head,
        budget=budget,
        workspace=workspace,
        device_name=device_name(settings),
        linear_attention_kernels=kernels_in_use(model),
    )
    workspace.rest()
    announce("entailment", backbone, budget)
    return classifier


def _budget(
    backbone: Backbone,
    settings: Settings,
    workspace: Workspace,
    max_branches: int | None,
) -> BranchBudget:
    cost = measure_cost(backbone)
    budget_bytes = workspace.budget_bytes(settings)
    return BranchBudget(cost, budget_bytes, settings.max_tokens, max_branches)


def announce(what: str, backbone: Backbone, budget: BranchBudget) -> None:
    """Log that an engine has started, and how it runs."""
    logger.info(
        "ready for %s: %s attention over shared states, %.0f MiB for branches",
        what,
        backbone.branch_attention,
        budget.budget_bytes / MIB,
    )


def identity_of(model: PreTrainedModel, source: ModelSource, dtype: str) -> ModelIdentity:
    """Return what every answer says of the model that gave it."""
    return ModelIdentity(
        source=source.name,
        revision=source.revision,
        dtype=dtype,
        device=str(next(model.parameters()).device),
        torch_version=torch.__version__,
        transformers_version=transformers.__version__,
    )
