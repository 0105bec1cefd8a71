"""Temperature calibration per workload: load a table, apply it as a view beside the native numbers.

Knows nothing of HTTP, the engine or how a temperature was fitted.
"""

import contextlib
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

from semif_bento.errors import InvalidRequest, StartupError
from semif_bento.protocol import PROMPT_VERSION, softmax


@dataclass(frozen=True, slots=True)
class Binding:
    """What a table of temperatures belongs to: an engine, the setting that names the table, and the
    version of a prompt that its temperatures were fitted on.

    `former_names` of the engine stand in tables that were fitted before it was renamed.
    """

    engine: str
    variable: str
    prompt_version: str
    former_names: tuple[str, ...] = ()

    def covers(self, prompt_version: str) -> bool:
        """Tell whether a temperature holds for a prompt: for this version, or a part of it."""
        return f"{prompt_version}/".startswith(f"{self.prompt_version}/")


LETTERS = Binding("letters", "SEMIF_CALIBRATION", PROMPT_VERSION, former_names=("letter",))


@dataclass(frozen=True, slots=True)
class CalibratedView:
    """`softmax(option_logits / temperature)` for one workload; the argmax is the native one."""

    workload: str
    temperature: float
    probabilities: tuple[float, ...]

    def by_option(self, option_ids: Sequence[str]) -> dict[str, float]:
        """Return the probabilities by option.

        Raises:
            ValueError: their numbers differ.
        """
        return dict(zip(option_ids, self.probabilities, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where a fitted temperature comes from.

    `rows` labelled rows in `groups` groups, whose file had the SHA-256 `data_sha256`; figures in
    0..1 except the NLL (nats), raw and at temperatures fitted without the row's own fold.
    """

    engine: str
    model_source: str
    model_revision: str
    dtype: str
    prompt_version: str
    data_sha256: str
    rows: int
    groups: int
    accuracy: float
    nll_raw: float
    nll_out_of_fold: float
    brier_raw: float
    brier_out_of_fold: float
    ece_raw: float
    ece_out_of_fold: float


@dataclass(frozen=True, slots=True)
class CalibrationTable:
    """Temperatures by workload name, and where the fitted ones come from; empty when none is set.

    A workload without provenance was written by hand: it binds to no model.
    """

    temperatures: Mapping[str, float]
    provenances: Mapping[str, Provenance] = field(default_factory=dict)
    binding: Binding = LETTERS

    @property
    def workloads(self) -> list[str]:
        """Return the known workload names in alphabetical order."""
        return sorted(self.temperatures)

    def require(self, workload: str | None) -> None:
        """Refuse a workload that the table does not hold; None asks for no calibration.

        Raises:
            InvalidRequest: unknown workload; the message lists the known ones, not the asked one.
        """
        if workload is not None and workload not in self.temperatures:
            known = ", ".join(self.workloads) or "none"
            raise InvalidRequest(f"The workload is unknown; known workloads: {known}.")

    def require_model(self, source: str, revision: str) -> None:
        """Refuse a model that a temperature of the table was not fitted for.

        The data type does not count: the noise it adds is far below what a temperature corrects.

        Raises:
            StartupError: a workload was fitted for another source or revision; it is named.
        """
        for workload, fitted in sorted(self.provenances.items()):
            if (fitted.model_source, fitted.model_revision) != (source, revision):
                raise StartupError(
                    f"{self.binding.variable}: {workload!r} was fitted for "
                    f"{fitted.model_source} at {fitted.model_revision}, not for {source} at "
                    f"{revision}."
                )

    def view(self, workload: str, option_logits: Sequence[float]) -> CalibratedView:
        """Return the calibrated probabilities of one decision.

        Raises:
            InvalidRequest: unknown workload.
        """
        self.require(workload)
        temperature = self.temperatures[workload]
        return CalibratedView(workload, temperature, softmax(option_logits, temperature))


def load_calibration(path: Path | None, binding: Binding = LETTERS) -> CalibrationTable:
    """Read an engine's `{workload: temperature}` from a JSON file; no path gives an empty table.

    A value is a plain number, or what `semif-bento calibrate` writes:
    `{"temperature": number, "provenance": {…}}` with exactly the keys of `Provenance`.

    Raises:
        StartupError: unreadable file, not a JSON object, a key twice, a temperature that is not a
            finite number above 0, or a provenance that is malformed, of another prompt version or
            of another engine; the message names the setting and the workload.
    """
    variable = binding.variable
    if path is None:
        return CalibrationTable(MappingProxyType({}), binding=binding)
    try:
        text = path.read_text(encoding="utf-8")
        table = json.loads(text, object_pairs_hook=lambda pairs: _read_object(pairs, variable))
    except (OSError, ValueError) as exc:
        raise StartupError(f"{variable} cannot be read as JSON: {type(exc).__name__}.") from exc
    if not isinstance(table, dict):
        raise StartupError(f"{variable} must hold a JSON object of workload: temperature.")
    temperatures: dict[str, float] = {}
    provenances: dict[str, Provenance] = {}
    for workload, value in table.items():
        if isinstance(value, dict):
            provenances[workload] = _provenance(workload, value, binding)
            value = value["temperature"]
        temperatures[workload] = _temperature(workload, value, variable)
    return CalibrationTable(MappingProxyType(temperatures), MappingProxyType(provenances), binding)


def _read_object(pairs: list[tuple[str, Any]], variable: str) -> dict[str, Any]:
    twice = [key for key, count in Counter(key for key, _ in pairs).items() if count > 1]
    if twice:
        raise StartupError(f"{variable} holds {twice[0]!r} twice.")
    return dict(pairs)


def _temperature(workload: str, value: object, variable: str) -> float:
    if not workload:
        raise StartupError(f"{variable} holds an empty workload name.")
    temperature = math.nan
    if isinstance(value, int | float) and not isinstance(value, bool):
        with contextlib.suppress(OverflowError):  # an integer beyond any float
            temperature = float(value)
    if not math.isfinite(temperature) or temperature <= 0:
        raise StartupError(
            f"{variable}: the temperature of {workload!r} must be a finite number above 0."
        )
    return temperature


def _provenance(workload: str, entry: dict[str, Any], binding: Binding) -> Provenance:
    variable = binding.variable
    found = entry.get("provenance")
    types = {setting.name: setting.type for setting in fields(Provenance)}
    if (
        entry.keys() != {"temperature", "provenance"}
        or not isinstance(found, dict)
        or found.keys() != types.keys()
        or any(type(found[name]) is not kind for name, kind in types.items())
    ):
        raise StartupError(
            f"{variable}: {workload!r} must hold `temperature` and a whole `provenance`."
        )
    if found["engine"] in binding.former_names:
        found = {**found, "engine": binding.engine}
    for name, ours in (("engine", binding.engine), ("prompt_version", binding.prompt_version)):
        if found[name] != ours:
            raise StartupError(
                f"{variable}: {workload!r} was fitted for {name} {found[name]!r}, this is {ours!r}."
            )
    return Provenance(**found)
