"""The causal model, loaded and run once for every engine that reads one; knows no engine."""

import logging
from dataclasses import dataclass
from functools import cached_property

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


class Layers:
    """A model's layers as engines run them, and what a forward through them takes.

    The cost is measured when it is first asked for: after an engine has proven the layers.
    """

    def __init__(self, backbone: Backbone) -> None:
        self.backbone = backbone

    @cached_property
    def cost(self) -> CostModel:
        """Bytes of a forward."""
        with torch.inference_mode():
            return measure_cost(self.backbone)


def load_once(opening: Opening) -> LoadedModel:
    """Load the causal model, or return it where that has happened.

    Raises:
        StartupError: its files or its weights are not right.
    """
    return opening.once("causal model", lambda: load_causal(opening.settings))


def layers_once(opening: Opening) -> Layers:
    """Put our layers around the causal model, or return them where that has happened.

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


def make_layers(model: PreTrainedModel, settings: Settings) -> Layers:
    """Put our layers around a loaded model, which stays untouched.

    Raises:
        StartupError: the architecture cannot be run.
    """
    return Layers(Backbone(model, choose_branch_attention(model, settings.branch_attention)))
