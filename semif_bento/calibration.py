"""Temperature calibration per workload: load a table, apply it as a view beside the native numbers.

Knows nothing of HTTP, the engine or how a temperature was fitted.
"""

import contextlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from semif_bento.errors import InvalidRequest, StartupError
from semif_bento.protocol import softmax


@dataclass(frozen=True, slots=True)
class CalibratedView:
    """`softmax(option_logits / temperature)` for one workload; the argmax is the native one."""

    workload: str
    temperature: float
    probabilities: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class CalibrationTable:
    """Temperatures by workload name; empty when no table is configured."""

    temperatures: Mapping[str, float]

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

    def view(self, workload: str, option_logits: Sequence[float]) -> CalibratedView:
        """Return the calibrated probabilities of one decision.

        Raises:
            InvalidRequest: unknown workload.
        """
        self.require(workload)
        temperature = self.temperatures[workload]
        return CalibratedView(workload, temperature, softmax(option_logits, temperature))


def load_calibration(path: Path | None) -> CalibrationTable:
    """Read `{workload: temperature}` from a JSON file; no path gives an empty table.

    Raises:
        StartupError: unreadable file, not a JSON object, or a temperature that is not a finite
            number above 0; the message names SEMIF_CALIBRATION and the workload.
    """
    if path is None:
        return CalibrationTable(MappingProxyType({}))
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as exc:
        raise StartupError(
            f"SEMIF_CALIBRATION cannot be read as JSON: {type(exc).__name__}."
        ) from exc
    if not isinstance(table, dict):
        raise StartupError("SEMIF_CALIBRATION must hold a JSON object of workload: temperature.")
    return CalibrationTable(MappingProxyType({k: _temperature(k, v) for k, v in table.items()}))


def _temperature(workload: str, value: object) -> float:
    if not workload:
        raise StartupError("SEMIF_CALIBRATION holds an empty workload name.")
    temperature = math.nan
    if isinstance(value, int | float) and not isinstance(value, bool):
        with contextlib.suppress(OverflowError):  # an integer beyond any float
            temperature = float(value)
    if not math.isfinite(temperature) or temperature <= 0:
        raise StartupError(
            f"SEMIF_CALIBRATION: the temperature of {workload!r} must be a finite number above 0."
        )
    return temperature
