"""What every engine's assembly does alike: budget, identity, one log line; knows no engine."""

import logging

import torch
import transformers
from transformers import PreTrainedModel

from semif_bento.decisions import ModelIdentity
from semif_bento.engine.backbone import Backbone
from semif_bento.engine.budget import BranchBudget
from semif_bento.engine.cost import measure_cost
from semif_bento.engine.memory import MIB
from semif_bento.engine.sources import ModelSource
from semif_bento.engine.workspace import Workspace
from semif_bento.settings import Settings

logger = logging.getLogger(__name__)


def measure_budget(
    backbone: Backbone,
    settings: Settings,
    workspace: Workspace,
    max_branches: int | None,
) -> BranchBudget:
    """Measure what a forward takes, and fix the bytes for states and branches.

    Raises:
        StartupError: they do not hold the largest legal prompt.
    """
    cost = measure_cost(backbone)
    budget_bytes = workspace.budget_bytes(settings)
    return BranchBudget(cost, budget_bytes, settings.max_tokens, max_branches)


def announce(what: str, backbone: Backbone, budget: BranchBudget) -> None:
    """Log that an engine is ready."""
    logger.info(
        "ready for %s: %s attention over shared states, %.0f MiB for branches",
        what,
        backbone.branch_attention,
        budget.budget_bytes / MIB,
    )


def identify(model: PreTrainedModel, source: ModelSource, dtype: str) -> ModelIdentity:
    """Return what answers will name."""
    return ModelIdentity(
        source=source.name,
        revision=source.revision,
        dtype=dtype,
        device=str(next(model.parameters()).device),
        torch_version=torch.__version__,
        transformers_version=transformers.__version__,
    )
