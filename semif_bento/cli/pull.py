"""`semif-bento pull`: fill the Hugging Face cache with the pinned models and verify every file.

Knows nothing of what is in the files; the only command that uses the network. A connection that
breaks is resumed within a file; a pull that is ended keeps its whole files and drops the others.
"""

import argparse
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from semif_bento.cli.environment import read_environment
from semif_bento.cli.snapshot import TOKENIZER_FILES, FileReport, verify_snapshot
from semif_bento.errors import StartupError
from semif_bento.settings import Settings, is_hub_id


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A model on the hub that the settings name; its files may lie in a sub-folder."""

    model: str
    revision: str
    subfolder: str | None = None


def run(args: argparse.Namespace) -> int:
    """Download what is missing, verify all of it, and download again what was damaged.

    Every configured model that is a hub id is pulled, the NLI model after the letter model.

    Raises:
        StartupError: no model is a hub id, the hub cannot be reached or does not have it, or a
            file is still missing or damaged after its second download.
    """
    settings = read_environment(os.environ, args.env_file).with_token().settings()
    wanted = list(_wanted(settings))
    if not wanted:
        named = " and ".join(filter(None, (settings.model, settings.nli_model)))
        raise StartupError(f"{named} lies on this disk already; only a hub id is pulled.")
    for one in wanted:
        _pull(one)
    return 0


def _wanted(settings: Settings) -> Iterator[_Wanted]:
    if settings.has_causal_model and is_hub_id(settings.model) and settings.revision:
        yield _Wanted(settings.model, settings.revision)
    if settings.nli_model and is_hub_id(settings.nli_model) and settings.nli_revision:
        yield _Wanted(settings.nli_model, settings.nli_revision, settings.nli_subfolder)


def _pull(wanted: _Wanted) -> None:
    folder = f", folder {wanted.subfolder}" if wanted.subfolder else ""
    print(f"pulling {wanted.model} at {wanted.revision}{folder}", flush=True)
    directory = _download(wanted)
    reports = _verify(directory)
    if any(report.fault for report in reports):
        _drop_damaged(directory, reports)
        reports = _verify(_download(wanted))
    faults = [f"{report.name}: {report.fault}" for report in reports if report.fault]
    if faults:
        raise StartupError(f"{len(faults)} files are not right ({faults[0]}).{_hint(reports)}")
    total_gib = sum(report.size_bytes for report in reports) / 2**30
    print(f"verified {len(reports)} files, {total_gib:.2f} GiB, in {directory}")


def _hint(reports: list[FileReport]) -> str:
    """Return what helps when all that was published has arrived, and that is too little."""
    lacking = {report.name for report in reports if report.fault}
    if lacking <= set(TOKENIZER_FILES):
        return " `semif-bento overlay` takes a tokenizer from the base model."
    return ""


def _download(wanted: _Wanted) -> Path:
    """Return the directory of the model's files, all of which have arrived."""
    import httpx2
    from huggingface_hub import constants, snapshot_download

    from semif_bento.engine.sources import model_patterns

    if constants.HF_HUB_OFFLINE:
        raise StartupError("HF_HUB_OFFLINE is set, which forbids downloads; unset it to pull.")
    allowed, ignored = model_patterns(wanted.subfolder)
    try:
        path = snapshot_download(
            wanted.model,
            revision=wanted.revision,
            allow_patterns=allowed,
            ignore_patterns=ignored,
        )
    except (OSError, httpx2.HTTPError) as exc:
        raise StartupError(_explain(exc, wanted.model, wanted.revision)) from exc
    return Path(path) / (wanted.subfolder or "")


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
