"""Measure one changed setting at a time, each in a process of its own; rank what is valid.

Knows nothing of how a run measures; it reads the `run.json` that each leaves. A ranking is a table:
nothing is changed by it.
"""

import json
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from semif_bento.bench.classify.run_folder import DONE, INPUTS, REFERENCE, RUN
from semif_bento.errors import StartupError
from semif_bento.settings import Settings, variable

BASELINE, BATCH = "baseline", "batch"
SWEPT = (
    *("nli_dtype", "branch_attention", "branch_budget_mib", "prefix_cache_mib", "vram_cap_gib"),
    BATCH,
)
"""What may be swept: nothing of it changes the model, the pairs or what an answer means."""
DTYPE = "SEMIF_NLI_DTYPE"
DEFAULT_DTYPE = str(next(f.default for f in fields(Settings) if f.name == "nli_dtype"))
COMMAND = (sys.executable, "-m", "semif_bento.cli.main", "bench-classify")


@dataclass(frozen=True, slots=True)
class Profile:
    """The baseline with one setting changed; the baseline itself changes none."""

    name: str
    setting: str | None = None
    value: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a profile's run ended; `reason` says why it is not ranked, None when it is."""

    profile: Profile
    facts: Mapping[str, Any]
    reason: str | None

    def seconds(self, state: str) -> float:
        """Return the median of a cache state."""
        return float(self.facts["states"][state]["median_s"])

    def max_entailment_diff(self) -> float:
        """Return the largest distance of any pass from the reference."""
        return max(
            done["check"]["agreement"]["max_entailment_diff"] for done in self.facts["completed"]
        )


def read_profiles(path: Path) -> list[Profile]:
    """Read a TOML file with one table `[sweep]` of `setting = [values]`; the baseline comes first.

    Raises:
        StartupError: it cannot be read, names something that is not swept, or holds a value that
            the setting cannot have.
    """
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as exc:
        raise StartupError(f"{path} cannot be read as TOML: {type(exc).__name__}.") from exc
    if set(found) != {"sweep"} or not isinstance(found["sweep"], dict) or not found["sweep"]:
        raise StartupError(f"{path} must hold one table, [sweep], with at least one setting.")
    profiles = [Profile(BASELINE)]
    for setting, values in found["sweep"].items():
        if setting not in SWEPT:
            raise StartupError(f"{setting} is not swept; {', '.join(SWEPT)} are.")
        if not isinstance(values, list) or not values:
            raise StartupError(f"{setting} must be a list of values.")
        for value in map(str, values):
            _require_legal(setting, value)
            profiles.append(Profile(f"{setting}={value}", setting, value))
    if len({profile.name for profile in profiles}) != len(profiles):
        raise StartupError(f"{path} holds the same profile twice.")
    return profiles


def run_profiles(
    profiles: Sequence[Profile],
    directory: Path,
    environ: Mapping[str, str],
    arguments: Sequence[str],
    inputs: Path | None,
    batch: int,
    on_start: Callable[[Profile], object],
    on_end: Callable[[Outcome], object],
    reference: Path | None = None,
) -> list[Outcome]:
    """Run every profile after another; all take the baseline's pairs, and its reference by dtype.

    Args:
        profiles: the baseline first.
        directory: exists; each profile gets a folder and a log in it.
        environ: the baseline's variables.
        arguments: of the command, for every profile.
        inputs: file of pairs; None for the default ones.
        batch: the baseline's.
        on_start, on_end: called around each profile.
        reference: one that stands already, of the baseline's dtype.

    Raises:
        StartupError: the baseline ended before its pairs were frozen.
    """
    outcomes: list[Outcome] = []
    baseline_dtype = environ.get(DTYPE) or DEFAULT_DTYPE
    references = {baseline_dtype: reference} if reference else {}
    for number, profile in enumerate(profiles):
        on_start(profile)
        own = directory / f"{number:02}-{profile.name}"
        command = [*COMMAND, "--out", str(own), *arguments]
        command += ["--batch", profile.value if profile.setting == BATCH else str(batch)]
        if inputs:
            command += ["--inputs", str(inputs)]
        changed = dict(environ)
        if profile.setting not in (None, BATCH):
            changed[f"SEMIF_{profile.setting.upper()}"] = profile.value
        dtype = changed.get(DTYPE) or DEFAULT_DTYPE
        if dtype in references:
            command += ["--reference", str(references[dtype])]
        with (directory / f"{own.name}.log").open("wb") as log:
            code = subprocess.run(command, env=changed, stdout=log, stderr=log).returncode
        outcomes.append(_outcome(profile, own, code))
        on_end(outcomes[-1])
        if (own / REFERENCE).is_file():
            references.setdefault(dtype, own / REFERENCE)
        if profile.name == BASELINE:
            inputs = own / INPUTS
            if not inputs.is_file():
                raise StartupError(f"The baseline did not start: {outcomes[-1].reason}")
    return outcomes


def rank(outcomes: Sequence[Outcome]) -> tuple[list[Outcome], list[Outcome]]:
    """Return the valid runs, fastest on fresh pairs first, and those that are not ranked."""
    valid = [outcome for outcome in outcomes if outcome.reason is None]
    return (
        sorted(valid, key=lambda outcome: outcome.seconds("cold")),
        [outcome for outcome in outcomes if outcome.reason is not None],
    )


def _outcome(profile: Profile, directory: Path, code: int) -> Outcome:
    try:
        facts = json.loads((directory / RUN).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return Outcome(profile, {}, f"it left no run.json (exit code {code}); see its log.")
    if facts.get("void"):
        return Outcome(profile, facts, f"void: {facts['void']}")
    if facts.get("faults"):
        return Outcome(profile, facts, f"failed: {facts['faults'][0]}")
    if facts.get("phase") != DONE or code != 0:
        reason = facts.get("reason") or f"it ended while {facts.get('phase')} (exit code {code})"
        return Outcome(profile, facts, f"failed: {reason}")
    return Outcome(profile, facts, None)


def _require_legal(setting: str, value: str) -> None:
    if setting == BATCH:
        if not value.isdecimal() or int(value) < 1:
            raise StartupError("batch must be a number from 1.")
        return
    field = next(field for field in fields(Settings) if field.name == setting)
    try:
        field.metadata["parse"](value)
    except ValueError as exc:
        raise StartupError(f"{variable(field)} {exc}.") from None
