"""The whole measurement: passes in three cache states, each compared, and what they say together.

Knows nothing of files, cards or printing.
"""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from semif_bento.bench.classify.agreement import Agreement, Audit, audit, compare
from semif_bento.bench.classify.inputs import FrozenInputs
from semif_bento.bench.classify.passes import STATES, Pass, State, run_pass
from semif_bento.bench.classify.reference import Reference, Triple
from semif_bento.bench.classify.target import Target

MIN_PASSES = 3
COLD_BAR, WARM_BAR = 1.5, 8.0
"""How many times faster than without sharing a fresh set and a repeated one must be."""


@dataclass(frozen=True, slots=True)
class Check:
    """What the reference says of all pairs, run once in some way."""

    agreement: Agreement
    audit: Audit


@dataclass(frozen=True, slots=True)
class CheckedPass:
    """A pass with what the reference says of it."""

    run: Pass
    check: Check

    def faults(self) -> tuple[str, ...]:
        """Return one sentence for each kind of disagreement."""
        where = f"{self.run.state}, {'warm-up' if not self.run.round else f'pass {self.run.round}'}"
        found = []
        if self.check.agreement.changed:
            found.append(f"{where}: another label for {_some(self.check.agreement.changed)}.")
        if self.check.audit.changed:
            found.append(f"{where}: another winner in {_some(self.check.audit.changed)}.")
        return tuple(found)


@dataclass(frozen=True, slots=True)
class StateFigures:
    """One cache state: first use apart, medians of the passes after it, latencies of batches."""

    state: State
    first_s: float
    median_s: float
    seconds: tuple[float, ...]
    batch_p50_s: float
    batch_p90_s: float
    batch_max_s: float
    cached_share: float


@dataclass(frozen=True, slots=True)
class Measurement:
    """All passes in the order they ran, and the figures of each state."""

    passes: tuple[CheckedPass, ...]
    states: tuple[StateFigures, ...]

    @property
    def cold_ratio(self) -> float:
        """How many times faster a fresh set is than without sharing."""
        return self._median("disabled") / self._median("cold")

    @property
    def warm_ratio(self) -> float:
        """How many times faster a repeated set is than without sharing."""
        return self._median("disabled") / self._median("warm")

    def faults(self) -> tuple[str, ...]:
        """Return every disagreement with the reference; none may be."""
        return tuple(fault for checked in self.passes for fault in checked.faults())

    def missed_bars(self) -> tuple[str, ...]:
        """Return one sentence for each ratio under its bar."""
        bars = (("cold", self.cold_ratio, COLD_BAR), ("warm", self.warm_ratio, WARM_BAR))
        return tuple(
            f"{name} is {ratio:.2f}× disabled, under the bar of {bar:g}×."
            for name, ratio, bar in bars
            if not ratio >= bar
        )

    def _median(self, state: State) -> float:
        return next(found.median_s for found in self.states if found.state == state)


def check(inputs: FrozenInputs, found: Sequence[Triple], reference: Reference) -> Check:
    """Compare the logits of all pairs, in order, with the reference."""
    expected = reference.logits()
    ids = [row.pair.id for row in inputs.rows]
    return Check(compare(ids, found, expected), audit(inputs.groups(), found, expected))


def measure(
    target: Target,
    inputs: FrozenInputs,
    reference: Reference,
    *,
    batch: int,
    passes: int,
    on_pass: Callable[[CheckedPass], object] = lambda checked: None,
) -> Measurement:
    """Run a warm-up round and `passes` rounds of all states, and compare every pass.

    Raises:
        ValueError: fewer than 3 passes.
        ScoringFailed, OutOfMemory: the classifier failed.
    """
    if passes < MIN_PASSES:
        raise ValueError(f"a median needs {MIN_PASSES} passes")
    done: list[CheckedPass] = []
    for round_ in range(passes + 1):
        for state in STATES:
            found = run_pass(target.classifier, inputs, state, round_, batch)
            checked = CheckedPass(found, check(inputs, found.logits, reference))
            done.append(checked)
            on_pass(checked)
    runs = [checked.run for checked in done]
    return Measurement(tuple(done), tuple(_figures(state, runs) for state in STATES))


def _figures(state: State, runs: Sequence[Pass]) -> StateFigures:
    first, *measured = (run for run in runs if run.state == state)
    seconds = tuple(run.seconds for run in measured)
    latencies = sorted(second for run in measured for second in run.batch_seconds)
    shared = sum(run.prefix_tokens for run in measured)
    return StateFigures(
        state=state,
        first_s=first.seconds,
        median_s=statistics.median(seconds),
        seconds=seconds,
        batch_p50_s=statistics.median(latencies),
        batch_p90_s=latencies[round(0.9 * (len(latencies) - 1))],
        batch_max_s=latencies[-1],
        cached_share=sum(run.cached_tokens for run in measured) / shared if shared else 0.0,
    )


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return ", ".join(names[:8]) + more
