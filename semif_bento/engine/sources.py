"""Find a model's files on this disk; knows nothing of torch, downloads or what the files hold."""

import importlib.metadata
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from huggingface_hub import snapshot_download
from huggingface_hub.errors import LocalEntryNotFoundError

from semif_bento.errors import StartupError
from semif_bento.settings import Settings

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


def locate_nli(settings: Settings) -> ModelSource:
    """Find the files of the configured NLI model; its name tells the sub-folder, if there is one.

    Raises:
        StartupError: as `locate` raises it, the sub-folder is missing, or it is a GGUF file.
    """
    name, subfolder = settings.nli_model or "", settings.nli_subfolder
    found = locate(name, settings.nli_revision, variable="SEMIF_NLI_MODEL", subfolder=subfolder)
    if found.kind == "gguf":
        raise StartupError("SEMIF_NLI_MODEL must hold safetensors; GGUF keeps no such head.")
    if not subfolder:
        return found
    path = found.path / subfolder
    if not path.is_dir():
        raise StartupError(f"SEMIF_NLI_SUBFOLDER: there is no folder {subfolder!r} in it.")
    return replace(found, name=settings.nli_name, path=path)


def locate(
    model: str, revision: str | None, *, variable: str = "SEMIF_MODEL", subfolder: str | None = None
) -> ModelSource:
    """Find the files of a model without touching the network.

    Args:
        model: a hub id, a directory, a `.gguf` file or `package:<distribution>/<file>`.
        revision: 40-hex commit for a hub id, any text for a local one; for a package it defaults
            to `<distribution> <version>`.
        variable: the setting that named the model, for messages.
        subfolder: where in a hub repository the model's files lie; the path found is the
            repository's all the same.

    Raises:
        StartupError: the files are missing, or the revision is missing or not a commit.
    """
    if model.startswith(PACKAGE_PREFIX):
        return _in_package(model, revision, variable)
    path = Path(model).expanduser()
    if path.exists() or model.endswith(".gguf"):
        return _on_disk(model, revision, path, variable)
    return _in_hub_cache(model, revision, variable, subfolder)


def model_patterns(subfolder: str | None) -> tuple[list[str], list[str]]:
    """Return which files of a hub repository to take, and which of those to leave all the same."""
    under = f"{subfolder}/" if subfolder else ""
    return (
        [under + pattern for pattern in MODEL_FILES],
        [under + pattern for pattern in OTHER_FILES],
    )


def _in_package(model: str, revision: str | None, variable: str) -> ModelSource:
    distribution, _, file = model.removeprefix(PACKAGE_PREFIX).partition("/")
    try:
        found = importlib.metadata.distribution(distribution)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        raise StartupError(f"{variable}: no installed package is named {distribution!r}.") from None
    path = Path(str(found.locate_file(file)))
    if not file or not path.exists():
        raise StartupError(f"{variable}: the package {distribution!r} holds no such file.")
    return _on_disk(model, revision or f"{distribution} {found.version}", path, variable)


def _on_disk(model: str, revision: str | None, path: Path, variable: str) -> ModelSource:
    if not revision:
        pin = variable.replace("MODEL", "REVISION")
        raise StartupError(f"{pin} is required for a local {variable}; any text will do.")
    if path.is_dir():
        return ModelSource("directory", model, revision, path)
    if path.is_file() and path.suffix == ".gguf":
        return ModelSource("gguf", model, revision, path)
    raise StartupError(f"{variable} names neither a directory nor an existing .gguf file.")


def _in_hub_cache(
    model: str, revision: str | None, variable: str, subfolder: str | None
) -> ModelSource:
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", model):
        raise StartupError(f"{variable} names no existing directory or file and is not a hub id.")
    if not re.fullmatch(r"[0-9a-f]{40}", revision or ""):
        pin = variable.replace("MODEL", "REVISION")
        raise StartupError(f"{pin} must be the 40-hex commit of the hub id {variable}.")
    wanted, unwanted = model_patterns(subfolder)
    try:
        path = Path(
            snapshot_download(
                model,
                revision=revision,
                local_files_only=True,
                allow_patterns=wanted,
                ignore_patterns=unwanted,
            )
        )
    except LocalEntryNotFoundError:
        raise StartupError(
            f"{model} at {revision} is not in the Hugging Face cache; `semif-bento pull` fills it."
        ) from None
    return ModelSource("hub", model, str(revision), path)
