"""`semif-bento overlay`: a directory of links to a checkpoint and to what it lacks of its base.

A checkpoint that was published without its tokenizer or processor files takes them from the model
that it was trained from. Weights and config.json are never taken: they are what makes it another
model. Knows nothing of what is in the files beyond that each is what its hub published.
"""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

from semif_bento.cli.snapshot import TOKENIZER_FILES, FileReport, check_file
from semif_bento.errors import StartupError

HASH = r"[0-9a-f]{40}|[0-9a-f]{64}"
TAKEN = (
    *TOKENIZER_FILES,
    *("vocab.json", "merges.txt", "chat_template.jinja", "generation_config.json"),
    *("preprocessor_config.json", "video_preprocessor_config.json", "processor_config.json"),
)
"""Configuration alone. A base model may lack the optional ones; then nobody needs them."""


def run(args: argparse.Namespace) -> int:
    """Make the directory and print what came from where; return 0.

    Raises:
        StartupError: the checkpoint is none, the directory holds something, the base model is not
            in the Hugging Face cache, or a file of it that is needed is missing or damaged. Then
            no directory is left.
    """
    links = dict(_own(args.checkpoint))
    taken = dict(_lacking(links, args.base, args.base_revision))
    _make_links(args.directory, links | taken)
    for name, target in sorted((links | taken).items()):
        print(f"{name}: {f'{args.base} at {args.base_revision}' if name in taken else target}")
    print(f"{args.directory}: {len(links)} links to the checkpoint, {len(taken)} to its base")
    return 0


def _own(checkpoint: Path) -> Iterator[tuple[str, Path]]:
    if not (checkpoint / "config.json").is_file() or not list(checkpoint.glob("*.safetensors")):
        raise StartupError(
            f"{checkpoint} is no checkpoint: config.json or safetensors are missing."
        )
    for path in sorted(checkpoint.iterdir()):
        if path.is_dir():
            continue
        report = check_file(path, with_hash=False)
        if report.fault:
            raise StartupError(f"{path} is not whole: {report.fault}.")
        yield path.name, path.resolve()


def _lacking(own: dict[str, Path], base: str, revision: str) -> Iterator[tuple[str, Path]]:
    """Yield what the base has to give and the checkpoint lacks, each file proven by its hash."""
    snapshot = _base_snapshot(base, revision)
    for name in TAKEN:
        path = snapshot / name
        if name in own or (
            name not in TOKENIZER_FILES and not path.is_symlink() and not path.exists()
        ):
            continue
        report = _proven(path)
        if report.fault:
            raise StartupError(f"{name} of {base} at {revision}: {report.fault}; pull it again.")
        yield name, path.resolve()


def _base_snapshot(base: str, revision: str) -> Path:
    from huggingface_hub import constants
    from huggingface_hub.file_download import repo_folder_name

    if not re.fullmatch(r"[\w.-]+/[\w.-]+", base) or not re.fullmatch(r"[0-9a-f]{40}", revision):
        raise StartupError("The base must be a hub id, pinned to a 40-hex commit.")
    folder = repo_folder_name(repo_id=base, repo_type="model")
    snapshot = Path(constants.HF_HUB_CACHE) / folder / "snapshots" / revision
    if not snapshot.is_dir():
        raise StartupError(
            f"{base} at {revision} is not in the Hugging Face cache; `semif-bento pull` fills it."
        )
    return snapshot


def _proven(path: Path) -> FileReport:
    """Check a file of the base, which must lie under a name that tells its hash."""
    report = check_file(path)
    blob = path.resolve()
    has_claim = blob.parent.name == "blobs" and re.fullmatch(HASH, blob.name)
    if report.fault is None and not has_claim:
        return FileReport(path.name, report.size_bytes, "its cache claims no hash for it")
    return report


def _make_links(directory: Path, links: dict[str, Path]) -> None:
    made: list[Path] = []
    is_new = not directory.exists()
    try:
        if not is_new and next(directory.iterdir(), None) is not None:
            raise StartupError(f"{directory} holds something already; it must be new or empty.")
        directory.mkdir(parents=True, exist_ok=True)
        for name, target in links.items():
            (directory / name).symlink_to(target)
            made.append(directory / name)
    except OSError as exc:
        for path in made:
            path.unlink()
        if is_new and directory.is_dir():
            directory.rmdir()
        raise StartupError(f"{directory} cannot be made: {type(exc).__name__}.") from exc
