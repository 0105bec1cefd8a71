"""Build the likelihood engine around a loaded model, and prove it.

Knows nothing of files or HTTP.
"""

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from semif_bento.engine.assembly import announce, identity_of
from semif_bento.engine.backbone import Backbone, choose_branch_attention
from semif_bento.engine.budget import BranchBudget
from semif_bento.engine.cost import measure_cost
from semif_bento.engine.delta import kernels_in_use
from semif_bento.engine.device import device_name
from semif_bento.engine.likelihood.encoding import LikelihoodEncoder
from semif_bento.engine.likelihood.head import TokenHead
from semif_bento.engine.likelihood.proofs import prove_likelihood
from semif_bento.engine.likelihood.reading import Reader
from semif_bento.engine.likelihood.scorer import TorchLikelihood
from semif_bento.engine.sources import ModelSource
from semif_bento.engine.workspace import Workspace
from semif_bento.settings import Settings

MAX_BRANCHES = 256
"""Most branches of a group, however small they are: splitting stays quick for thousands."""


@torch.inference_mode()
def assemble_likelihood(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    source: ModelSource,
    settings: Settings,
    workspace: Workspace | None = None,
    backbone: Backbone | None = None,
) -> TorchLikelihood:
    """Build a scorer by likelihood around a loaded model and run every start-up proof on it.

    The model itself stays untouched; the scorer's layers share its parameters.

    Args:
        model: in evaluation mode on the configured device.
        tokenizer: the model's own; it needs no chat template.
        source: where both come from.
        settings: limits and budgets.
        workspace: shared with other engines; one of its own by default.
        backbone: the letter engine's on the same model, where there is one.

    Raises:
        StartupError: a proof fails, or the budget does not hold the largest legal prompt.
    """
    workspace = workspace or Workspace.of(settings)
    request_tokens = settings.max_tokens * settings.max_decisions
    encoder = LikelihoodEncoder(tokenizer, settings.max_tokens, request_tokens)
    if backbone is None:
        backbone = Backbone(model, choose_branch_attention(model, settings.branch_attention))
    head = TokenHead(model.get_output_embeddings())
    # The head is read while hidden states of a group live: its share is not the branches'.
    budget_bytes = workspace.budget_bytes(settings) - head.bytes
    budget = BranchBudget(measure_cost(backbone), budget_bytes, settings.max_tokens, MAX_BRANCHES)
    reader = Reader(backbone, head, budget)
    prove_likelihood(model, reader, encoder)
    scorer = TorchLikelihood(
        identity=identity_of(model, source, settings.dtype),
        encoder=encoder,
        reader=reader,
        workspace=workspace,
        device_name=device_name(settings),
        linear_attention_kernels=kernels_in_use(model),
    )
    workspace.rest()
    announce("likelihood", backbone, budget)
    return scorer
