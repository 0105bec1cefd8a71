"""Open a scorer from settings, or refuse to start; knows nothing of HTTP."""

import logging
import os
from dataclasses import dataclass

import torch
import transformers
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from semif_bento.backend import Backend
from semif_bento.decisions import ModelIdentity
from semif_bento.engine.backbone import Backbone, choose_branch_attention
from semif_bento.engine.budget import BranchBudget
from semif_bento.engine.cost import measure_cost
from semif_bento.engine.delta import kernels_in_use
from semif_bento.engine.encoding import Encoder
from semif_bento.engine.head import SlotHead
from semif_bento.engine.loading import load_model, model_directory
from semif_bento.engine.memory import (
    GIB,
    MIB,
    CpuMemory,
    CudaMemory,
    DeviceMemory,
    cap_process,
)
from semif_bento.engine.prefix import PrefixCache
from semif_bento.engine.proofs import prove_backbone, prove_model
from semif_bento.engine.scorer import TorchScorer
from semif_bento.engine.sources import ModelSource, locate
from semif_bento.engine.vocabulary import load_tokenizer
from semif_bento.errors import OutOfMemory, StartupError
from semif_bento.settings import Settings

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OpenedModel:
    """A scorer, with the untouched model and the tokenizer that it was built around."""

    scorer: TorchScorer
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerFast


def open_backend(settings: Settings) -> Backend:
    """Load and prove what the settings ask for; call it on the thread that will score.

    Raises:
        StartupError: as `open_scorer` raises it.
    """
    return Backend(letter=open_scorer(settings))


def open_scorer(settings: Settings) -> TorchScorer:
    """Load the model, prove it, warm it up, and return a scorer that is ready to serve.

    It must be called on the thread that will score.

    Raises:
        StartupError: anything of INV-3: the device, the files, the weights, the slots, or a proof.
    """
    return open_model(settings).scorer


def open_model(settings: Settings) -> OpenedModel:
    """Do what `open_scorer` does, and keep the untouched model beside the scorer.

    Raises:
        The same as `open_scorer`.
    """
    os.environ["HF_HUB_OFFLINE"] = "1"
    check_device(settings)
    if settings.vram_cap_gib is not None:
        cap_process(settings.vram_cap_gib)
    source = locate(settings.model, settings.revision)
    logger.info("loading %s at %s", source.name, source.revision)
    directory = model_directory(source, settings.dtype, settings.cache_dir)
    tokenizer = load_tokenizer(directory)
    try:
        model = load_model(directory, settings.dtype, settings.device)
        scorer = assemble_scorer(model, tokenizer, source, settings)
        return OpenedModel(scorer, model, tokenizer)
    except (torch.OutOfMemoryError, OutOfMemory) as exc:
        raise StartupError("The model does not fit on the device under its cap.") from exc


def check_device(settings: Settings) -> None:
    """Refuse a device that torch cannot use or has no kernels for.

    Raises:
        StartupError: CUDA is asked for and missing, or torch lacks kernels for the card.
    """
    if settings.device == "cpu":
        return
    if not torch.cuda.is_available():
        raise StartupError("SEMIF_DEVICE=cuda, but torch sees no CUDA device.")
    major, minor = torch.cuda.get_device_capability(0)
    known = torch.cuda.get_arch_list()
    # A kernel runs on cards of its own major version, from its own minor version on: sm_86 on 8.9.
    if not any(f"sm_{major}{older}" in known for older in range(minor + 1)):
        raise StartupError(
            f"torch {torch.__version__} has no kernels for sm_{major}{minor}; it has "
            f"{', '.join(known)}."
        )


@torch.inference_mode()
def assemble_scorer(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    source: ModelSource,
    settings: Settings,
) -> TorchScorer:
    """Build a scorer around a loaded model and run every start-up proof on it.

    The model itself stays untouched; the scorer's layers share its parameters.

    Raises:
        StartupError: a proof fails, or the budget does not hold the largest legal prompt.
    """
    memory: DeviceMemory = CudaMemory() if settings.device == "cuda" else CpuMemory()
    weight_bytes = memory.allocated_bytes()
    request_tokens = settings.max_tokens * settings.max_decisions
    model_head = model.get_output_embeddings()
    head_rows = getattr(model_head, "out_features", None)
    encoder = Encoder(tokenizer, settings.max_tokens, request_tokens, head_rows)
    backbone = Backbone(model, choose_branch_attention(model, settings.branch_attention))
    head = SlotHead(model_head, encoder.slot_ids, encoder.wide_slots.ids)
    prove_model(model, backbone, head, encoder)
    prove_backbone(backbone, encoder)
    cost = measure_cost(backbone)
    cache_bytes = settings.prefix_cache_mib * MIB
    resting = weight_bytes + _idle_bytes(memory)
    budget = BranchBudget(
        cost,
        _budget_bytes(settings, resting, cache_bytes),
        settings.max_tokens,
        settings.max_decisions,
    )
    scorer = TorchScorer(
        identity=_identity(model, source, settings),
        encoder=encoder,
        backbone=backbone,
        head=head,
        budget=budget,
        prefix_cache=PrefixCache(cache_bytes),
        memory=memory,
        device_name=_device_name(settings),
        linear_attention_kernels=kernels_in_use(model),
    )
    memory.release()
    scorer.guard.fix_baseline()
    logger.info(
        "ready: %s attention over shared states, %.0f MiB for branches",
        backbone.branch_attention,
        budget.budget_bytes / MIB,
    )
    return scorer


def _budget_bytes(settings: Settings, resting_bytes: int, cache_bytes: int) -> int:
    """Return the bytes for a state and its branches, fixed from now on.

    Under a VRAM cap: what the cap leaves beside the weights, what rests idle after warm-up, and
    the prefix cache. Without one: the setting.
    """
    if settings.vram_cap_gib is None:
        return settings.branch_budget_mib * MIB
    return int(settings.vram_cap_gib * GIB) - resting_bytes - cache_bytes


def _idle_bytes(memory: DeviceMemory) -> int:
    """Return what stays reserved beside live tensors after a release: workspaces of libraries."""
    memory.release()
    return max(0, memory.reserved_bytes() - memory.allocated_bytes())


def _identity(model: PreTrainedModel, source: ModelSource, settings: Settings) -> ModelIdentity:
    return ModelIdentity(
        source=source.name,
        revision=source.revision,
        dtype=settings.dtype,
        device=str(next(model.parameters()).device),
        torch_version=torch.__version__,
        transformers_version=transformers.__version__,
    )


def _device_name(settings: Settings) -> str:
    return torch.cuda.get_device_name(0) if settings.device == "cuda" else "cpu"
