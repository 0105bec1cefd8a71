"""`semif-bento pull`: fill the Hugging Face cache with the pinned model and verify every file.

Knows nothing of what is in the files; the only command that uses the network. A connection that
breaks is resumed within a file; a pull that is ended keeps its whole files and drops the others.
"""

import argparse
import os
from pathlib import Path

from semif_bento.cli.environment import read_environment
from semif_bento.cli.snapshot import FileReport, verify_snapshot
from semif_bento.errors import StartupError
from semif_bento.settings import is_hub_id


def run(args: argparse.Namespace) -> int:
    """Download what is missing, verify all of it, and download again what was damaged.

    Raises:
        StartupError: the model is no hub id, the hub cannot be reached or does not have it, or a
            file is still missing or damaged after its second download.
    """
    settings = read_environment(os.environ, args.env_file).with_token().settings()
    if not is_hub_id(settings.model) or settings.revision is None:
        raise StartupError(f"{settings.model} lies on this disk already; only a hub id is pulled.")
    print(f"pulling {settings.model} at {settings.revision}", flush=True)
    directory = _download(settings.model, settings.revision)
    reports = _verify(directory)
    if any(report.fault for report in reports):
        _drop_damaged(directory, reports)
        reports = _verify(_download(settings.model, settings.revision))
    faults = [f"{report.name}: {report.fault}" for report in reports if report.fault]
    if faults:
        raise StartupError(f"{len(faults)} files are not right ({faults[0]}).")
    total_gib = sum(report.size_bytes for report in reports) / 2**30
    print(f"verified {len(reports)} files, {total_gib:.2f} GiB, in {directory}")
    return 0


def _download(model: str, revision: str) -> Path:
    import httpx2
    from huggingface_hub import constants, snapshot_download

    from semif_bento.engine.sources import MODEL_FILES, OTHER_FILES

    if constants.HF_HUB_OFFLINE:
        raise StartupError("HF_HUB_OFFLINE is set, which forbids downloads; unset it to pull.")
    patterns = {"allow_patterns": list(MODEL_FILES), "ignore_patterns": list(OTHER_FILES)}
    try:
        return Path(snapshot_download(model, revision=revision, **patterns))
    except (OSError, httpx2.HTTPError) as exc:
        raise StartupError(_explain(exc, model, revision)) from exc


def _explain(exc: Exception, model: str, revision: str) -> str:
    """Return one sentence for a failed download; the hub's answer often is only the cause."""
    from huggingface_hub.errors import HfHubHTTPError

    for error in (exc, exc.__cause__):
        if isinstance(error, HfHubHTTPError):
            return f"The hub answered {error.response.status_code} for {model} at {revision}."
    return (
        f"{model} cannot be downloaded ({type(exc).__name__}). Is there a network? Files that "
        "have arrived whole are kept for the next pull."
    )


def _verify(directory: Path) -> list[FileReport]:
    from huggingface_hub.utils import tqdm

    total = sum(path.stat().st_size for path in directory.glob("*") if path.is_file())
    with tqdm(total=total, unit="B", unit_scale=True, desc="verifying") as progress:
        reports = verify_snapshot(directory, on_bytes=progress.update)
    for report in reports:
        if report.fault:
            print(f"  {report.name}: {report.fault}", flush=True)
    return reports


def _drop_damaged(directory: Path, reports: list[FileReport]) -> None:
    """Remove what cannot be right, or the hub's client would take it for done."""
    for report in reports:
        if report.fault:
            path = directory / report.name
            path.resolve().unlink(missing_ok=True)
            path.unlink(missing_ok=True)
