"""Verify the files of a model in a Hugging Face cache; knows nothing of networks or of tensors.

What is proven: every file a text model needs is there, every shard that the index names is there,
a safetensors file is as long as its header says, and a file has the hash that its name in the
cache's blobs folder claims. Not proven: that the hub serves what its publisher meant.
"""

import hashlib
import json
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")
REQUIRED = ("config.json", *TOKENIZER_FILES)
INDEX = "model.safetensors.index.json"
CHUNK_BYTES = 1 << 22


@dataclass(frozen=True, slots=True)
class FileReport:
    """One file of a snapshot: its size in bytes, and what is wrong with it (None: nothing)."""

    name: str
    size_bytes: int
    fault: str | None = None


def verify_snapshot(
    directory: Path,
    on_bytes: Callable[[int], object] = lambda count: None,
    *,
    with_hashes: bool = True,
) -> list[FileReport]:
    """Check every file of a snapshot directory and every file that it should have.

    Args:
        directory: `snapshots/<commit>` of a Hugging Face cache, or any model directory; hashes
            are only known for links into a `blobs` folder.
        on_bytes: called with the number of bytes after each piece that was hashed.
        with_hashes: False leaves out the hashes, which read every byte.

    Returns:
        One report a file in alphabetical order, missing files among them.
    """
    present = {path.name: path for path in sorted(directory.glob("*")) if not path.is_dir()}
    reports = {
        name: check_file(path, on_bytes, with_hash=with_hashes) for name, path in present.items()
    }
    for name in _needed(directory):
        reports.setdefault(name, FileReport(name, 0, "missing"))
    return [reports[name] for name in sorted(reports)]


def _needed(directory: Path) -> list[str]:
    """Return the names that a model directory must hold; any fault in the index adds none."""
    index = directory / INDEX
    if not index.is_file():
        single = [] if list(directory.glob("*.safetensors")) else ["model.safetensors"]
        return [*REQUIRED, *single]
    try:
        shards = set(json.loads(index.read_bytes())["weight_map"].values())
    except (ValueError, KeyError, AttributeError, TypeError):
        return [*REQUIRED, "model.safetensors"]
    return [*REQUIRED, *sorted(shards)]


def check_file(
    path: Path,
    on_bytes: Callable[[int], object] = lambda count: None,
    *,
    with_hash: bool = True,
) -> FileReport:
    """Check one file as `verify_snapshot` checks each."""
    if not path.is_file():
        return FileReport(path.name, 0, "missing")  # a link into blobs that leads nowhere
    size = path.stat().st_size
    if path.suffix == ".safetensors" and (expected := _safetensors_bytes(path)) != size:
        return FileReport(path.name, size, f"holds {size} bytes, its header tells {expected}")
    if path.suffix == ".json" and not _is_json(path):
        return FileReport(path.name, size, "not JSON")
    blob = path.resolve()
    claimed = blob.name if with_hash and blob.parent.name == "blobs" else ""
    if claimed and _digest(blob, claimed, size, on_bytes) != claimed:
        return FileReport(path.name, size, "its hash is not the published one")
    return FileReport(path.name, size)


def _safetensors_bytes(path: Path) -> int | None:
    """Return the file length that a safetensors header implies; None when it cannot be read."""
    with path.open("rb") as stream:
        try:
            (length,) = struct.unpack("<Q", stream.read(8))
            header = json.loads(stream.read(min(length, 100_000_000)))
            ends = [v["data_offsets"][1] for k, v in header.items() if k != "__metadata__"]
        except (struct.error, ValueError, KeyError, AttributeError, TypeError):
            return None
    return 8 + length + max(ends, default=0)


def _is_json(path: Path) -> bool:
    try:
        json.loads(path.read_bytes())
    except ValueError:
        return False
    return True


def _digest(blob: Path, claimed: str, size: int, on_bytes: Callable[[int], object]) -> str:
    """Return the hash of the kind that a blob's name is: SHA-256 for large files, git's for others.

    A name that is neither is returned as it is: then nothing is known.
    """
    if re.fullmatch(r"[0-9a-f]{64}", claimed):
        digest = hashlib.sha256()
    elif re.fullmatch(r"[0-9a-f]{40}", claimed):
        digest = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    else:
        return claimed
    with blob.open("rb") as stream:
        while chunk := stream.read(CHUNK_BYTES):
            digest.update(chunk)
            on_bytes(len(chunk))
    return digest.hexdigest()
