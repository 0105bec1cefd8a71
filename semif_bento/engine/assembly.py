"""What every engine's assembly does alike: budget, identity, one log line; knows no engine."""

import logging

import torch
import transformers
from transformers import PreTrainedModel

from semif_bento.decisions import ModelIdentity
from semif_bento.engine.backbone import Backbone
from semif_bento.engine.budget import BranchBudget
from semif_bento.engine.cost import CostModel
from semif_bento.engine.memory import MIB
from semif_bento.engine.sources import ModelSource
from semif_bento.engine.workspace import Workspace
from semif_bento.settings import Settings

logger = logging.getLogger(__name__)


def fix_budget(
    cost: CostModel,
    settings: Settings,
    workspace: Workspace,
    max_branches: int | None,
    held_bytes: int = 0,
) -> BranchBudget:
    """Fix the bytes for states and branches.

    Args:
        cost: what a forward takes.
        settings: limits, and the bytes where no cap gives them.
        workspace: tells what a cap leaves.
        max_branches: most branches of a group; None for no limit.
        held_bytes: what the engine needs beside a forward's own.

    Raises:
        StartupError: they do not hold the largest legal prompt.
    """
    budget_bytes = workspace.budget_bytes(settings) - held_bytes
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
