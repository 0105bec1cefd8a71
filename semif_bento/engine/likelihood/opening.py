"""Build the likelihood engine around a loaded model, and prove it.

Knows nothing of files or HTTP.
"""

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from semif_bento.engine.assembly import announce, fix_budget, identify
from semif_bento.engine.causal import Layers, LoadedModel, layers_once, load_once, make_layers
from semif_bento.engine.delta import kernels_in_use
from semif_bento.engine.device import device_name
from semif_bento.engine.likelihood.encoding import LikelihoodEncoder
from semif_bento.engine.likelihood.head import TokenHead
from semif_bento.engine.likelihood.proofs import prove_likelihood
from semif_bento.engine.likelihood.reading import Reader
from semif_bento.engine.likelihood.scorer import TorchLikelihood
from semif_bento.engine.opening import Opening
from semif_bento.engine.sources import ModelSource
from semif_bento.engine.workspace import Workspace
from semif_bento.settings import Settings

MAX_BRANCHES = 256
"""Most branches of a group, however small they are: splitting stays quick for thousands."""


def load_weights(opening: Opening) -> LoadedModel:
    """Load the causal model, once for all engines that read it.

    Raises:
        StartupError: its files or its weights are not right.
    """
    return load_once(opening)


def open_engine(opening: Opening) -> TorchLikelihood:
    """Build, prove and warm up the likelihood engine.

    Raises:
        StartupError: as `assemble_likelihood` raises it.
    """
    loaded = load_once(opening)
    return assemble_likelihood(
        loaded.model,
        loaded.tokenizer,
        loaded.source,
        opening.settings,
        opening.workspace,
        layers_once(opening),
    )


@torch.inference_mode()
def assemble_likelihood(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    source: ModelSource,
    settings: Settings,
    workspace: Workspace | None = None,
    layers: Layers | None = None,
) -> TorchLikelihood:
    """Build a scorer by likelihood around a loaded model and run every start-up proof on it.

    The model itself stays untouched; the scorer's layers share its parameters.

    Args:
        model: in evaluation mode on the configured device.
        tokenizer: the model's own; it needs no chat template.
        source: where both come from.
        settings: limits and budgets.
        workspace: shared with other engines; one of its own by default.
        layers: the model's, shared with other engines; of its own by default.

    Raises:
        StartupError: a proof fails, or the budget does not hold the largest legal prompt.
    """
    workspace = workspace or Workspace.of(settings)
    request_tokens = settings.max_tokens * settings.max_decisions
    encoder = LikelihoodEncoder(tokenizer, settings.max_tokens, request_tokens)
    layers = layers or make_layers(model, settings)
    backbone = layers.backbone
    head = TokenHead(model.get_output_embeddings())
    # The head is read while hidden states of a group live: its share is not the branches'.
    budget = fix_budget(layers.cost, settings, workspace, MAX_BRANCHES, held_bytes=head.bytes)
    reader = Reader(backbone, head, budget)
    prove_likelihood(model, reader, encoder)
    scorer = TorchLikelihood(
        identity=identify(model, source, settings.dtype),
        encoder=encoder,
        reader=reader,
        workspace=workspace,
        device_name=device_name(settings),
        linear_attention_kernels=kernels_in_use(model),
    )
    workspace.rest()
    announce("likelihood", backbone, budget)
    return scorer
