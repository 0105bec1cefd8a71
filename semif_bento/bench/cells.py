"""Time one cell: reference, ours cold and ours warm, interleaved; knows nothing of printing.

The reference is SemIf's scorers as the package `fastjev` ships them. It is needed here only.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from semif_bento.bench.floor import Floor
from semif_bento.bench.target import Target
from semif_bento.bench.workload import as_rows, make_request
from semif_bento.decisions import ScoreRequest, Scores
from semif_bento.engine.letters.encoding import Encoder
from semif_bento.engine.meter import PeakMeter
from semif_bento.errors import StartupError

MAX_TOKENS = 8192
LONG_CALL_S = 20.0
"""A reference call over this is timed once instead of `repeats` times."""


@dataclass(frozen=True, slots=True)
class SharedCell:
    """Shared scoring at one size; seconds are medians, ratios reference over ours."""

    model: str
    dtype: str
    state_tokens: int
    decisions: int
    repeats: int
    reference_s: float
    cold_s: float
    warm_s: float
    ratio_cold: float
    ratio_warm: float
    reference_encode_s: float
    encode_s: float
    reference_peak_bytes: int
    peak_bytes: int
    floor_s: float
    floor_warm_s: float
    max_logit_diff: float
    flips: int


@dataclass(frozen=True, slots=True)
class DirectCell:
    """One decision scored whole; seconds are medians, the ratio reference over ours."""

    model: str
    dtype: str
    prompt_tokens: int
    repeats: int
    reference_s: float
    direct_s: float
    ratio: float
    floor_s: float
    max_logit_diff: float
    flips: int


def time_shared(
    target: Target, floor: Floor, state_tokens: int, decisions: int, repeats: int
) -> SharedCell:
    """Time shared scoring of one synthetic request, after one untimed and metered run of each.

    Raises:
        StartupError: the reference scorers are not installed.
    """
    scorer = target.scorer
    request = make_request(state_tokens, decisions, _counter(target))
    rows = as_rows(request)
    reference = _reference("shared", "score_shared")

    def run_reference() -> Any:
        return reference(target.model, target.tokenizer, rows, {}, MAX_TOKENS)

    def run_cold() -> Any:
        scorer.forget_prefixes()
        return scorer.shared(request)

    metered_at = time.perf_counter()
    (expected, reference_timing), reference_peak = _metered(run_reference)
    is_long = time.perf_counter() - metered_at > LONG_CALL_S
    outcome, peak = _metered(run_cold)
    count = 1 if is_long else repeats
    calls = (run_reference, run_cold, lambda: scorer.shared(request))
    reference_s, cold_s, warm_s = _interleaved(calls, count)
    encoded = Encoder(target.tokenizer, MAX_TOKENS).encode(request)
    lengths = [len(decision.suffix_ids) for decision in encoded.decisions]
    prefix_tokens = len(encoded.prefix_ids)
    gap, flips = _agreement(outcome.scores, expected)
    return SharedCell(
        model=target.name,
        dtype=scorer.identity.dtype,
        state_tokens=state_tokens,
        decisions=decisions,
        repeats=count,
        reference_s=reference_s,
        cold_s=cold_s,
        warm_s=warm_s,
        ratio_cold=reference_s / cold_s,
        ratio_warm=reference_s / warm_s,
        reference_encode_s=reference_timing["encode_seconds"],
        encode_s=outcome.timing.encode_seconds,
        reference_peak_bytes=reference_peak,
        peak_bytes=peak,
        floor_s=floor.seconds(prefix_tokens, lengths, prefilled=False),
        floor_warm_s=floor.seconds(prefix_tokens, lengths, prefilled=True),
        max_logit_diff=gap,
        flips=flips,
    )


def time_direct(target: Target, floor: Floor, prompt_tokens: int, repeats: int) -> DirectCell:
    """Time one decision of about `prompt_tokens` tokens scored whole.

    Raises:
        StartupError: the reference scorers are not installed.
    """
    request = _direct_request(target, prompt_tokens)
    row = as_rows(request)[0]
    reference = _reference("direct", "score")

    def run_reference() -> Any:
        return reference(target.model, target.tokenizer, row, {}, MAX_TOKENS)

    def run_ours() -> Any:
        return target.scorer.direct(request)

    expected, outcome = run_reference(), run_ours()
    reference_s, direct_s = _interleaved((run_reference, run_ours), repeats)
    gap, flips = _agreement([outcome.scores], [expected])
    tokens = outcome.scores.input_tokens
    return DirectCell(
        model=target.name,
        dtype=target.scorer.identity.dtype,
        prompt_tokens=tokens,
        repeats=repeats,
        reference_s=reference_s,
        direct_s=direct_s,
        ratio=reference_s / direct_s,
        floor_s=floor.seconds(0, [tokens], prefilled=True),
        max_logit_diff=gap,
        flips=flips,
    )


def _direct_request(target: Target, prompt_tokens: int) -> ScoreRequest:
    encoder, count = Encoder(target.tokenizer, MAX_TOKENS), _counter(target)
    request = make_request(1, 1, count)
    frame = len(encoder.encode(request).whole(0)) - count(str(request.state))
    return make_request(max(1, prompt_tokens - frame), 1, count)


def _counter(target: Target) -> Callable[[str], int]:
    def count(text: str) -> int:
        return len(target.tokenizer.encode(text, add_special_tokens=False))

    return count


def _reference(module: str, function: str) -> Callable[..., Any]:
    try:
        runtime = __import__(f"fastjev._runtime.{module}", fromlist=[function])
    except ImportError as exc:
        raise StartupError(
            "The reference scorers are not installed; `make setup` installs them (fastjev)."
        ) from exc
    return getattr(runtime, function)


def _metered(call: Callable[[], Any]) -> tuple[Any, int]:
    with PeakMeter() as meter:
        result = call()
    return result, meter.peak_bytes


def _interleaved(calls: Sequence[Callable[[], Any]], repeats: int) -> list[float]:
    """Return each call's median seconds over rounds in which every call runs once, in turn."""
    seconds: list[list[float]] = [[] for _ in calls]
    for _ in range(repeats):
        for call, found in zip(calls, seconds, strict=True):
            started = time.perf_counter()
            call()
            found.append(time.perf_counter() - started)
    return [statistics.median(found) for found in seconds]


def _agreement(ours: Sequence[Scores], expected: Sequence[dict[str, Any]]) -> tuple[float, int]:
    """Return the largest gap between logits, and how many winners differ."""
    gap, flips = 0.0, 0
    for scores, row in zip(ours, expected, strict=True):
        logits = row["option_logits"]
        pairs = zip(scores.option_logits, logits, strict=True)
        gap = max(gap, *(abs(a - b) for a, b in pairs))
        flips += scores.option_logits.index(max(scores.option_logits)) != logits.index(max(logits))
    return gap, flips
