"""Open the engines that the settings ask for, or refuse to start; knows nothing of HTTP."""

import logging
from dataclasses import dataclass

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from semif_bento.backend import Backend
from semif_bento.engine.assembly import assemble_classifier, assemble_scorer
from semif_bento.engine.device import prepare_device
from semif_bento.engine.letters.scorer import TorchScorer
from semif_bento.engine.loading import load_model, model_directory
from semif_bento.engine.nli.checkpoint import NliCheckpoint, load_checkpoint
from semif_bento.engine.nli.classifier import TorchClassifier
from semif_bento.engine.sources import ModelSource, locate, locate_nli
from semif_bento.engine.vocabulary import load_tokenizer
from semif_bento.engine.workspace import Workspace
from semif_bento.errors import OutOfMemory, StartupError
from semif_bento.settings import Settings

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """An untouched model, its tokenizer, and where both come from."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerFast
    source: ModelSource


@dataclass(frozen=True, slots=True)
class OpenedModel:
    """A scorer, with the untouched model and the tokenizer that it was built around."""

    scorer: TorchScorer
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerFast


def open_backend(settings: Settings) -> Backend:
    """Load, prove and warm up every engine that the settings ask for.

    It must be called on the thread that will score.

    Raises:
        StartupError: anything of INV-3: the device, the files, the weights, the slots, or a proof.
    """
    prepare_device(settings)
    try:
        # All weights first: what they leave under a cap is every engine's budget.
        letter = load_letter(settings) if settings.has_letter_engine else None
        nli = load_nli(settings) if settings.nli_model else None
        workspace = Workspace.of(settings)
        return Backend(
            letter=letter
            and assemble_scorer(letter.model, letter.tokenizer, letter.source, settings, workspace),
            nli=nli and assemble_classifier(*nli, settings, workspace),
        )
    except (torch.OutOfMemoryError, OutOfMemory) as exc:
        raise StartupError("The models do not fit on the device under its cap.") from exc


def open_model(settings: Settings) -> OpenedModel:
    """Open the letter engine alone, and keep the untouched model beside the scorer.

    Raises:
        StartupError: as `open_backend` raises it.
    """
    prepare_device(settings)
    try:
        loaded = load_letter(settings)
        scorer = assemble_scorer(loaded.model, loaded.tokenizer, loaded.source, settings)
    except (torch.OutOfMemoryError, OutOfMemory) as exc:
        raise StartupError("The model does not fit on the device under its cap.") from exc
    return OpenedModel(scorer, loaded.model, loaded.tokenizer)


def open_scorer(settings: Settings) -> TorchScorer:
    """Open the letter engine alone.

    Raises:
        StartupError: as `open_backend` raises it.
    """
    return open_model(settings).scorer


def open_classifier(settings: Settings) -> tuple[TorchClassifier, NliCheckpoint]:
    """Open the NLI engine alone, and keep the untouched checkpoint beside it.

    Raises:
        StartupError: as `open_backend` raises it.
    """
    prepare_device(settings)
    try:
        checkpoint, source = load_nli(settings)
        return assemble_classifier(checkpoint, source, settings), checkpoint
    except (torch.OutOfMemoryError, OutOfMemory) as exc:
        raise StartupError("The NLI model does not fit on the device under its cap.") from exc


def load_letter(settings: Settings) -> LoadedModel:
    """Load the model that letters are read from.

    Raises:
        StartupError: its files or its weights are not right.
    """
    source = locate(settings.model, settings.revision)
    logger.info("loading %s at %s", source.name, source.revision)
    directory = model_directory(source, settings.dtype, settings.cache_dir)
    tokenizer = load_tokenizer(directory)
    return LoadedModel(load_model(directory, settings.dtype, settings.device), tokenizer, source)


def load_nli(settings: Settings) -> tuple[NliCheckpoint, ModelSource]:
    """Load the model that entailment is read from.

    Raises:
        StartupError: its files or its weights are not right.
    """
    source = locate_nli(settings)
    logger.info("loading %s at %s", source.name, source.revision)
    return load_checkpoint(source.path, settings.nli_dtype, settings.device), source
