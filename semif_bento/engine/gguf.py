"""Convert a GGUF file once into a directory of safetensors; knows nothing of scoring.

Reading GGUF takes many seconds, the converted copy well under one. The directory appears under its
final name only when it is whole, so a killed conversion leaves nothing that could be loaded.
"""

import hashlib
import logging
import os
import shutil
import struct
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
import transformers

from semif_bento.engine.checkpoint import refuse_partial
from semif_bento.errors import StartupError

logger = logging.getLogger(__name__)

CONVERSION_VERSION = 2
"""Raise it when a copy made before must not be loaded again (1: of files that were not whole)."""
STALE_S = 24 * 3600
"""Age of a scratch folder that no conversion can be writing to any more."""
SCRATCH = ".converting-"
READ_ERRORS = (
    *(OSError, ValueError, KeyError, RuntimeError, ImportError, NotImplementedError),
    struct.error,  # a file that ends within its header
)


def converted_directory(file: Path, dtype: str, cache_dir: Path) -> Path:
    """Return the directory with the safetensors copy of a GGUF file, converting it when needed.

    Args:
        file: an existing `.gguf` file.
        dtype: "bfloat16", "float16" or "float32", the type the copy is stored in.
        cache_dir: where copies are kept; created when missing.

    Raises:
        StartupError: the file cannot be read as GGUF or is not whole, or the cache cannot be
            written.
    """
    target = cache_dir / f"gguf-{_fingerprint(file)}-{dtype}-v{CONVERSION_VERSION}"
    if target.is_dir():
        return target
    logger.info("converting %s to safetensors once; this takes some seconds", file.name)
    try:
        cache_dir.mkdir(parents=True, exist_ok=True)
        _sweep(cache_dir)
        with tempfile.TemporaryDirectory(prefix=SCRATCH, dir=cache_dir) as scratch:
            _convert(file, dtype, Path(scratch) / "model")
            _open_to_readers(Path(scratch) / "model")
            _publish(Path(scratch) / "model", target)
    except OSError as exc:
        raise StartupError(f"SEMIF_CACHE_DIR cannot be written: {type(exc).__name__}.") from exc
    return target


def _sweep(cache_dir: Path) -> None:
    """Remove what conversions that were killed have left."""
    for scratch in cache_dir.glob(f"{SCRATCH}*"):
        if time.time() - scratch.stat().st_mtime > STALE_S:
            shutil.rmtree(scratch, ignore_errors=True)


def _open_to_readers(copy: Path) -> None:
    """Give the files the permissions that the process gives its folders: other users may serve."""
    mode = copy.stat().st_mode & 0o666
    for path in copy.iterdir():
        path.chmod(mode)


def _fingerprint(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()[:16]


def _convert(file: Path, dtype: str, out: Path) -> None:
    where = {"pretrained_model_name_or_path": str(file.parent), "gguf_file": file.name}
    loader: Any = transformers.AutoModelForCausalLM
    try:
        model, info = loader.from_pretrained(
            **where, dtype=getattr(torch, dtype), output_loading_info=True
        )
        tokenizer = transformers.AutoTokenizer.from_pretrained(**where)
    except READ_ERRORS as exc:
        first_line = str(exc).partition("\n")[0]
        raise StartupError(
            f"The GGUF file cannot be loaded: {type(exc).__name__}: {first_line}"
        ) from exc
    refuse_partial(info)
    # The weights are plain now; a left-over quantization entry would make the copy unloadable.
    vars(model.config).pop("quantization_config", None)
    vars(model)["hf_quantizer"] = None
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)


def _publish(ready: Path, target: Path) -> None:
    try:
        os.rename(ready, target)
    except OSError:
        if not target.is_dir():  # else: another process converted the same file first
            raise
        shutil.rmtree(ready, ignore_errors=True)
