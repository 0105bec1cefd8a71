"""Check 5: 21 yes-or-no criteria over one state, timed; knows nothing of other checks."""

import json
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

import numpy as np
from tqdm import tqdm

from semif_bento.decisions import Decision, JsonState, Option, ScoreRequest, SharedTiming
from semif_bento.evidence.checks import Check, Figure
from semif_bento.evidence.target import Target, new_mark

NAME = "5 speed"
YES_NO = (Option("yes", "Yes"), Option("no", "No"))


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of N equal calls, in order."""

    seconds: tuple[float, ...]

    @property
    def p50(self) -> float:
        """Return the median."""
        return statistics.median(self.seconds)

    @property
    def p90(self) -> float:
        """Return the 90th percentile, interpolated."""
        return float(np.quantile(self.seconds, 0.9))

    @property
    def spread(self) -> float:
        """Return (slowest − fastest) / median."""
        return (max(self.seconds) - min(self.seconds)) / self.p50

    def tell(self) -> str:
        """Return all of it in milliseconds."""
        return f"p50 {self.p50 * 1e3:.0f} ms, p90 {self.p90 * 1e3:.0f} ms, spread {self.spread:.0%}"


def check_speed(target: Target, runs: int, max_p50_ms: float | None) -> Check:
    """Time shared calls over fresh states and over one known state, and direct calls beside them.

    One call of each kind comes first and is not counted. Through a service a time is that of the
    whole HTTP exchange.

    Args:
        target: what is timed.
        runs: timed calls of each kind, 3 or more.
        max_p50_ms: bar for the median over fresh states; None asks only that sharing pays.

    Raises:
        RequestError, EvidenceError: as the scorer raises it.
    """
    report, criteria = _read_criteria()
    decisions = tuple(
        Decision(f"c{place}", text, YES_NO) for place, text in enumerate(criteria, start=1)
    )[: target.max_decisions]
    states = [_fresh(report) for _ in range(runs + 1)]
    fresh = [_shared(target, state, decisions) for state in tqdm(states, desc="speed")][1:]
    known = [_shared(target, states[-1], decisions) for _ in range(runs + 1)][1:]
    direct_s = _time_direct(target, _fresh(report), decisions)
    cold, warm = (Times(tuple(seconds for seconds, _ in calls)) for calls in (fresh, known))
    timing, hits = fresh[-1][1], sum(timing.cache_hit for _, timing in known)
    floor_s = _floor_s(target, timing)
    bar = f"under {direct_s * 1e3:.0f} ms, the time of {len(decisions)} direct calls"
    if max_p50_ms is not None:
        bar += f"; p50 up to {max_p50_ms:g} ms"
    return Check(
        NAME,
        cold.p50 < direct_s and (max_p50_ms is None or cold.p50 * 1e3 <= max_p50_ms),
        f"{len(decisions)} criteria, N = {runs}: {cold.tell()}",
        bar,
        _figures(cold, warm, direct_s, timing, floor_s),
        (
            f"The state known already ({hits}/{runs} cache hits): {warm.tell()}.",
            f"{timing.prefix_tokens} state tokens, {timing.true_suffix_tokens} tokens of criteria "
            f"({timing.padded_suffix_tokens} computed); branch groups: {timing.branch_groups}.",
            _tell_floor(floor_s, cold.p50, target.place),
        ),
    )


def _figures(
    cold: Times, warm: Times, direct_s: float, timing: SharedTiming, floor_s: float | None
) -> dict[str, Figure]:
    figures: dict[str, Figure] = {
        "runs": len(cold.seconds),
        "direct_s": direct_s,
        "state_tokens": timing.prefix_tokens,
        "suffix_tokens": timing.true_suffix_tokens,
    }
    for name, times in (("fresh", cold), ("known", warm)):
        figures |= {
            f"{name}_p50_s": times.p50,
            f"{name}_p90_s": times.p90,
            f"{name}_least_s": min(times.seconds),
            f"{name}_most_s": max(times.seconds),
        }
    return figures if floor_s is None else {**figures, "floor_s": floor_s}


def _fresh(report: str) -> JsonState:
    """Return a state that shares nothing with any other but the instruction before it."""
    return {"case": new_mark(), "report": report}


def _shared(
    target: Target, state: JsonState, decisions: tuple[Decision, ...]
) -> tuple[float, SharedTiming]:
    started = time.perf_counter()
    outcome = target.scorer.shared(ScoreRequest(state, decisions))
    return time.perf_counter() - started, outcome.timing


def _time_direct(target: Target, state: JsonState, decisions: Sequence[Decision]) -> float:
    target.scorer.direct(ScoreRequest(state, (decisions[0],)))
    started = time.perf_counter()
    for decision in tqdm(decisions, desc="speed, direct", unit="call"):
        target.scorer.direct(ScoreRequest(state, (decision,)))
    return time.perf_counter() - started


def _floor_s(target: Target, timing: SharedTiming) -> float | None:
    """Return the seconds of the products that no way to compute avoids, on this device."""
    if target.loaded is None:
        return None
    from semif_bento.bench.floor import Floor

    each, rest = divmod(timing.true_suffix_tokens, timing.batch_size)
    lengths = [each + (place < rest) for place in range(timing.batch_size)]
    return Floor.of(target.loaded.model).seconds(timing.prefix_tokens, lengths, prefilled=False)


def _tell_floor(floor_s: float | None, p50_s: float, place: str) -> str:
    if floor_s is None:
        return f"Arithmetic floor: not known through a service ({place})."
    return (
        f"Arithmetic floor on this device: {floor_s * 1e3:.0f} ms, so p50 is "
        f"{p50_s / floor_s:.1f} times that."
    )


def _read_criteria() -> tuple[str, list[str]]:
    file = resources.files("semif_bento.evidence") / "data" / "criteria.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    return content["report"], content["criteria"]
