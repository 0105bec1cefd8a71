"""The causal model, loaded and run once for every engine that reads one; knows no engine."""

import logging
from dataclasses import dataclass

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from semif_bento.engine.backbone import Backbone, choose_branch_attention
from semif_bento.engine.cost import CostModel, measure_cost
from semif_bento.engine.loading import load_model, model_directory
from semif_bento.engine.opening import Opening
from semif_bento.engine.sources import ModelSource, locate
from semif_bento.engine.vocabulary import load_tokenizer
from semif_bento.settings import Settings

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """An untouched model, its tokenizer, and where both come from."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerFast
    source: ModelSource


@dataclass(frozen=True, slots=True)
class Layers:
    """A model's layers as engines run them, and what a forward through them takes."""

    backbone: Backbone
    cost: CostModel


def load_once(opening: Opening) -> LoadedModel:
    """Load the causal model, or return it where that has happened.

    Raises:
        StartupError: its files or its weights are not right.
    """
    return opening.once("causal model", lambda: load_causal(opening.settings))


def layers_once(opening: Opening) -> Layers:
    """Put our layers around the causal model and measure them, or return them.

    Raises:
        StartupError: the architecture cannot be run.
    """
    loaded = load_once(opening)
    return opening.once("causal layers", lambda: make_layers(loaded.model, opening.settings))


def load_causal(settings: Settings) -> LoadedModel:
    """Load the causal model.

    Raises:
        StartupError: its files or its weights are not right.
    """
    source = locate(settings.model, settings.revision)
    logger.info("loading %s at %s", source.name, source.revision)
    directory = model_directory(source, settings.dtype, settings.cache_dir)
    tokenizer = load_tokenizer(directory, needs_chat_template=False)
    return LoadedModel(load_model(directory, settings.dtype, settings.device), tokenizer, source)


@torch.inference_mode()
def make_layers(model: PreTrainedModel, settings: Settings) -> Layers:
    """Put our layers around a loaded model, which stays untouched, and measure them.

    Raises:
        StartupError: the architecture cannot be run.
    """
    backbone = Backbone(model, choose_branch_attention(model, settings.branch_attention))
    return Layers(backbone, measure_cost(backbone))
