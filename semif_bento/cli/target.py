"""What the commands of evidence examine, from their arguments: a service, or a model in process.

Knows nothing of what is measured about it.
"""

import argparse
import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING

from semif_bento.cli.environment import TOKEN, TOKEN_FILE, read_environment
from semif_bento.cli.server import project_root
from semif_bento.engine.kind import EngineKind
from semif_bento.engine.registry import KINDS, NLI
from semif_bento.errors import EvidenceError
from semif_bento.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from semif_bento.evidence.engine_target import EngineTarget
    from semif_bento.evidence.target import Target

SMALL_MODEL_SETTINGS = {
    "SEMIF_DTYPE": "float32",
    "SEMIF_BRANCH_BUDGET_MIB": "512",
    "SEMIF_MAX_TOKENS": "1024",  # the largest sizes would take most of the time
}
"""What the small model is measured with, where the environment does not say otherwise."""

PACKAGES = ("httpx", "matplotlib", "numpy", "scipy", "tqdm")


def require_packages() -> None:
    """Refuse to begin what cannot be finished.

    Raises:
        EvidenceError: a package of the dependency group `evidence` is not installed.
    """
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise EvidenceError(
            f"{', '.join(missing)} not installed; the dependency group `evidence` holds what this "
            "command needs (make setup installs it)."
        )


def open_target(args: argparse.Namespace) -> "Target":
    """Reach the service at `--url`, or load the configured model here.

    Raises:
        StartupError: a setting is wrong, or the model does not load.
        EvidenceError: the service cannot be reached or refuses the token, there is no token, or
            servers compute and no model is to be had here.
    """
    from semif_bento.evidence.target import open_local, open_service

    if args.url:
        return open_service(args.url, read_token(args.token_file))
    settings = read_settings(args)
    _announce(settings)
    return open_local(settings)


def open_engine_target(args: argparse.Namespace) -> "EngineTarget":
    """Reach or load the engine that `--engine` names.

    Raises:
        StartupError: a setting is wrong, or the model does not load.
        EvidenceError: as `open_target` raises it, or there is no NLI engine to ask.
    """
    from semif_bento.evidence.engine_target import open_engine_local, open_engine_service

    kind = KINDS[args.engine]
    if args.url:
        return open_engine_service(args.url, read_token(args.token_file), kind)
    settings = read_settings(args, uses_small_model=kind is not NLI)
    if not kind.is_wanted(settings):
        raise EvidenceError(f"--engine {kind.name}: {kind.absent}")
    _announce(settings)
    return open_engine_local(settings, kind)


def open_engine_targets(args: argparse.Namespace) -> "Sequence[EngineTarget]":
    """Reach or load every engine that `--engine` names; without it, every one that there is.

    Raises:
        StartupError, EvidenceError: as `open_engine_target` raises it.
    """
    from semif_bento.evidence.engine_target import (
        engines_of_service,
        open_engine_service,
        open_engines_local,
    )

    names = args.engine and set(args.engine)
    if args.url:
        token = read_token(args.token_file)
        present = engines_of_service(args.url, token)
        chosen = _choose(names, present)
        return [open_engine_service(args.url, token, kind) for kind in chosen]
    # The small model stands in for a causal one, never for the NLI engine's.
    reads_causal_model = names is None or names != {NLI.name}
    settings = read_settings(args, uses_small_model=reads_causal_model)
    chosen = _choose(names, [kind for kind in KINDS.values() if kind.is_wanted(settings)])
    _announce(settings)
    return open_engines_local(settings, chosen)


def _choose(names: "set[str] | None", present: "Sequence[EngineKind]") -> "Sequence[EngineKind]":
    """Return the kinds that are asked for, in the list's order.

    Raises:
        EvidenceError: one of them is not there, or none is.
    """
    if names is None:
        return present
    for kind in KINDS.values():
        if kind.name in names and kind not in present:
            raise EvidenceError(f"--engine {kind.name}: {kind.absent}")
    return [kind for kind in present if kind.name in names]


def read_settings(args: argparse.Namespace, *, uses_small_model: bool = True) -> Settings:
    """Return the settings of the environment and the env files; the small model's without any.

    The small model is measured in float32: its logits hardly follow the options, and bfloat16's
    rounding would hide what little they move.

    Raises:
        StartupError: a setting is wrong.
    """
    if args.env_file or os.environ.get("SEMIF_MODEL") or not uses_small_model:
        return read_environment(os.environ, args.env_file).with_token().settings()
    local = read_environment(os.environ, [project_root() / "configs" / "local.env"]).with_token()
    for name, value in SMALL_MODEL_SETTINGS.items():
        if not os.environ.get(name):
            local = local.with_value(name, value, "measured so")
    return local.settings()


def _announce(settings: Settings) -> None:
    """Say what is loaded.

    Raises:
        EvidenceError: servers compute, so no model is to be had here.
    """
    if settings.is_remote:
        raise EvidenceError(
            f"With SEMIF_BACKEND={settings.backend} there is no model here; measure the running "
            "service with --url."
        )
    model, dtype = settings.model, settings.dtype
    if not settings.has_causal_model:
        model, dtype = settings.nli_name, settings.nli_dtype
    print(f"loading {model} on {settings.device} in {dtype}", flush=True)


def read_token(file: Path | None) -> str:
    """Return a service's token: from a file, else from the environment.

    Raises:
        EvidenceError: there is none, or its file cannot be read.
    """
    file = file or (Path(os.environ[TOKEN_FILE]) if os.environ.get(TOKEN_FILE) else None)
    if file is None:
        if token := os.environ.get(TOKEN, "").strip():
            return token
        raise EvidenceError(f"--url needs a token: {TOKEN} in the environment, or --token-file.")
    try:
        return file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeError) as exc:
        raise EvidenceError(f"{file} cannot be read: {type(exc).__name__}.") from exc
