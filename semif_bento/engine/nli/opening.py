"""Load an NLI checkpoint, build the engine around it, and prove it; knows nothing of HTTP."""

import logging

import torch

from semif_bento.engine.assembly import announce, fix_budget, identify
from semif_bento.engine.backbone import Backbone, choose_branch_attention
from semif_bento.engine.cost import measure_cost
from semif_bento.engine.delta import kernels_in_use
from semif_bento.engine.device import device_name
from semif_bento.engine.nli.checkpoint import NliCheckpoint, load_checkpoint
from semif_bento.engine.nli.classifier import TorchClassifier
from semif_bento.engine.nli.encoding import PairEncoder
from semif_bento.engine.nli.engine import EntailmentEngine
from semif_bento.engine.nli.proofs import prove_classifier
from semif_bento.engine.opening import Opening
from semif_bento.engine.sources import ModelSource, locate_nli
from semif_bento.engine.workspace import Workspace
from semif_bento.settings import Settings

logger = logging.getLogger(__name__)


def load_weights(opening: Opening) -> tuple[NliCheckpoint, ModelSource]:
    """Load the checkpoint that entailment is read from.

    Raises:
        StartupError: its files or its weights are not right.
    """
    return opening.once("NLI checkpoint", lambda: load_nli(opening.settings))


def open_engine(opening: Opening) -> EntailmentEngine:
    """Build, prove and warm up the NLI engine.

    Raises:
        StartupError: as `assemble_classifier` raises it.
    """
    classifier = assemble_classifier(*load_weights(opening), opening.settings, opening.workspace)
    return EntailmentEngine(classifier, opening.settings.max_pairs)


def load_nli(settings: Settings) -> tuple[NliCheckpoint, ModelSource]:
    """Load the model that entailment is read from.

    Raises:
        StartupError: its files or its weights are not right.
    """
    source = locate_nli(settings)
    logger.info("loading %s at %s", source.name, source.revision)
    return load_checkpoint(source.path, settings.nli_dtype, settings.device), source


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
    budget = fix_budget(measure_cost(backbone), settings, workspace, None)
    classifier = TorchClassifier(
        identity=identify(model, source, settings.nli_dtype),
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
