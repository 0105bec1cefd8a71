"""Load a whole checkpoint, or refuse; knows nothing of tokenizers, prompts or scoring."""

import warnings
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors import SafetensorError
from transformers import PreTrainedModel

from semif_bento.engine.checkpoint import refuse_partial
from semif_bento.engine.gguf import converted_directory
from semif_bento.engine.sources import ModelSource
from semif_bento.errors import StartupError

QWEN = ("qwen3_5", "qwen3_5_text")
"""Types of model of which the text part is loaded."""
READ_ERRORS = (OSError, ValueError, KeyError, RuntimeError, ImportError, SafetensorError)


def model_directory(source: ModelSource, dtype: str, cache_dir: Path) -> Path:
    """Return the directory to load from, converting a GGUF file first when needed.

    Raises:
        StartupError: the GGUF file cannot be read or its copy cannot be written.
    """
    if source.kind == "gguf":
        return converted_directory(source.path, dtype, cache_dir)
    return source.path


def load_model(directory: Path, dtype: str, device: str) -> PreTrainedModel:
    """Load a causal language model whole, in evaluation mode, on `device`.

    Qwen3.5 checkpoints load their text part as `Qwen3_5ForCausalLM`, everything else loads through
    `AutoModelForCausalLM`.

    Args:
        directory: a local directory with a config and safetensors.
        dtype: "bfloat16", "float16" or "float32".
        device: "cpu" or "cuda".

    Raises:
        StartupError: unreadable files, an unknown architecture, weights that are missing,
            mismatched or unknown to the architecture, or a parameter on another device.
    """
    try:
        config = transformers.AutoConfig.from_pretrained(directory, local_files_only=True)
    except READ_ERRORS as exc:
        raise StartupError(f"The model cannot be loaded: {first_line(exc)}") from exc
    loader: type[Any] = transformers.AutoModelForCausalLM
    if config.model_type in QWEN:
        loader, config = transformers.Qwen3_5ForCausalLM, config.get_text_config()
    return load_whole(loader, directory, config, dtype, device, "The model")


def load_whole(
    loader: type[Any], directory: Path, config: Any, dtype: str, device: str, what: str
) -> PreTrainedModel:
    """Load a checkpoint by a class of transformers, in evaluation mode, on `device`.

    Args:
        loader: the class; it may be an auto class.
        directory: a local directory with safetensors.
        config: the configuration to load by.
        dtype: "bfloat16", "float16" or "float32".
        device: "cpu" or "cuda".
        what: names the model in messages.

    Raises:
        StartupError: unreadable files, weights that are missing, mismatched or unknown to the
            architecture, or a parameter on another device.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what matters in them is checked in `info` below
            model, info = loader.from_pretrained(
                directory,
                config=config,
                dtype=getattr(torch, dtype),
                output_loading_info=True,
                use_safetensors=True,
                local_files_only=True,
                trust_remote_code=False,
            )
    except READ_ERRORS as exc:
        raise StartupError(f"{what} cannot be loaded: {first_line(exc)}") from exc
    refuse_partial(info)
    model = model.to(device).eval()
    refuse_misplaced(model, device)
    return model


def refuse_misplaced(model: PreTrainedModel, device: str) -> None:
    """Refuse a model of which a parameter or buffer is not on `device`.

    Raises:
        StartupError: the first that is elsewhere, by name.
    """
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if tensor.device.type != device:
            raise StartupError(f"{name} sits on {tensor.device.type}, not on {device}.")


def first_line(exc: BaseException) -> str:
    """Return the first line of an exception's message, or its type where it has none."""
    return (str(exc).splitlines() or [type(exc).__name__])[0]
