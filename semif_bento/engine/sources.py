"""Find a model's files on this disk; knows nothing of torch, downloads or what the files hold."""

import importlib.metadata
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from huggingface_hub import snapshot_download
from huggingface_hub.errors import LocalEntryNotFoundError

from semif_bento.errors import StartupError

PACKAGE_PREFIX = "package:"
# What a text model needs of a hub repository: `pull` fetches these, `locate` asks for no more.
MODEL_FILES = (
    *("*.safetensors", "*.safetensors.index.json", "config.json", "generation_config.json"),
    *("tokenizer*", "vocab.json", "merges.txt", "special_tokens_map.json", "added_tokens.json"),
    "chat_template.*",
)
OTHER_FILES = ("*/*",)  # sub-folders hold other formats of the same weights


@dataclass(frozen=True, slots=True)
class ModelSource:
    """A model found on this disk.

    `name` is what the operator configured (it goes into answers as the model's source), `path` a
    directory, or one file when `kind` is "gguf".
    """

    kind: Literal["hub", "directory", "gguf"]
    name: str
    revision: str
    path: Path


def locate(model: str, revision: str | None) -> ModelSource:
    """Find the files of a model without touching the network.

    Args:
        model: a hub id, a directory, a `.gguf` file or `package:<distribution>/<file>`.
        revision: 40-hex commit for a hub id, any text for a local one; for a package it defaults
            to `<distribution> <version>`.

    Raises:
        StartupError: the files are missing, or the revision is missing or not a commit.
    """
    if model.startswith(PACKAGE_PREFIX):
        return _in_package(model, revision)
    path = Path(model).expanduser()
    if path.exists() or model.endswith(".gguf"):
        return _on_disk(model, revision, path)
    return _in_hub_cache(model, revision)


def _in_package(model: str, revision: str | None) -> ModelSource:
    distribution, _, file = model.removeprefix(PACKAGE_PREFIX).partition("/")
    try:
        found = importlib.metadata.distribution(distribution)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        raise StartupError(
            f"SEMIF_MODEL: no installed package is named {distribution!r}."
        ) from None
    path = Path(str(found.locate_file(file)))
    if not file or not path.exists():
        raise StartupError(f"SEMIF_MODEL: the package {distribution!r} holds no such file.")
    return _on_disk(model, revision or f"{distribution} {found.version}", path)


def _on_disk(model: str, revision: str | None, path: Path) -> ModelSource:
    if not revision:
        raise StartupError("SEMIF_REVISION is required for a local SEMIF_MODEL; any text will do.")
    if path.is_dir():
        return ModelSource("directory", model, revision, path)
    if path.is_file() and path.suffix == ".gguf":
        return ModelSource("gguf", model, revision, path)
    raise StartupError("SEMIF_MODEL names neither a directory nor an existing .gguf file.")


def _in_hub_cache(model: str, revision: str | None) -> ModelSource:
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", model):
        raise StartupError("SEMIF_MODEL names no existing directory or file and is not a hub id.")
    if not re.fullmatch(r"[0-9a-f]{40}", revision or ""):
        raise StartupError("SEMIF_REVISION must be the 40-hex commit of the hub id SEMIF_MODEL.")
    try:
        path = Path(
            snapshot_download(
                model,
                revision=revision,
                local_files_only=True,
                allow_patterns=list(MODEL_FILES),
                ignore_patterns=list(OTHER_FILES),
            )
        )
    except LocalEntryNotFoundError:
        raise StartupError(
            f"{model} at {revision} is not in the Hugging Face cache; `semif-bento pull` fills it."
        ) from None
    return ModelSource("hub", model, str(revision), path)
