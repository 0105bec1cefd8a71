"""Check 6: memory at the token limit, and a measured table of decisions × state tokens.

Every cell is a call that was made; nothing is computed from sizes. Knows nothing of other checks.
"""

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tqdm import tqdm

from semif_bento.decisions import Decision, Option, ScoreRequest
from semif_bento.errors import InvalidRequest, OutOfMemory
from semif_bento.evidence.checks import Check
from semif_bento.evidence.target import Target, new_mark

NAME = "6 memory"
MIB_PER_GIB = 1024
DECISIONS = (1, 8, 64, 256)
STATE_TOKENS = (128, 512, 2048, 8192, 32768)
QUESTION = "Does the log end with an alarm?"
YES_NO = (Option("yes", "It ends with an alarm"), Option("no", "It does not end with an alarm"))
WORD = " and"


@dataclass(frozen=True, slots=True)
class Cell:
    """One call: how many decisions over how many shared tokens, what it took.

    `prompt_tokens` are those of its longest prompt. `peak_mib` is what the call's tensors held at
    once beside the weights, known in process only; `failure` is empty when the call was answered.
    """

    decisions: int
    state_tokens: int
    seconds: float
    groups: int
    prompt_tokens: int
    peak_mib: float | None
    reserved_gib: float
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Capacity:
    """The check's outcome and the table behind it."""

    check: Check
    cells: tuple[Cell, ...]


def check_memory(target: Target) -> Capacity:
    """Score the longest prompt, then a grid up to the most decisions and the longest state.

    Raises:
        RequestError, EvidenceError: as the scorer raises it; only out of memory becomes a cell.
    """
    sizes = _find_sizes(target)
    resting_gib = target.resting_gib()
    most_tokens = target.max_tokens - sizes.rest
    longest = _measure(target, sizes, 1, most_tokens)
    decisions = sorted({*(n for n in DECISIONS if n < target.max_decisions), target.max_decisions})
    states = [n for n in STATE_TOKENS if n < most_tokens * 0.9]
    grid = [(count, tokens) for tokens in (*states, most_tokens) for count in decisions]
    grid.remove((1, most_tokens))  # the longest prompt, which is measured already
    measured = [_measure(target, sizes, *size) for size in tqdm(grid, desc="memory", unit="call")]
    cells = (longest, *measured)
    failed = [cell for cell in cells if cell.failure]
    most = max(cells, key=lambda cell: cell.peak_mib or cell.reserved_gib)
    reserved_gib = max(cell.reserved_gib for cell in cells)
    over = bool(target.vram_cap_gib) and reserved_gib > target.vram_cap_gib
    bar = "every legal size is answered"
    if target.vram_cap_gib:
        bar += f", within {target.vram_cap_gib:g} GiB"
    check = Check(
        NAME,
        not failed and not over,
        f"{len(cells) - len(failed)}/{len(cells)} sizes answered; {_tell(longest)} at "
        f"{longest.prompt_tokens} tokens, {_tell(most)} at most",
        bar,
        {
            "resting_gib": resting_gib,
            "reserved_gib": reserved_gib,
            "longest_prompt_tokens": longest.prompt_tokens,
            "longest_prompt_s": longest.seconds,
            **({"longest_prompt_mib": longest.peak_mib} if longest.peak_mib is not None else {}),
            **({"largest_mib": most.peak_mib} if most.peak_mib is not None else {}),
        },
        (_tell_how(target), *(cell.failure for cell in failed)),
    )
    return Capacity(check, cells)


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Shared tokens of a state with W more words: `base` + W × `each`; a question adds `rest`."""

    base: int
    each: float
    rest: int

    def words(self, state_tokens: int) -> int:
        return max(0, int((state_tokens - self.base) / self.each))


def _find_sizes(target: Target) -> _Sizes:
    few, many = 8, 24
    outcomes = [target.scorer.shared(_request(f"{n} words", n, 1)) for n in (few, many)]
    counts = [outcome.timing.prefix_tokens for outcome in outcomes]
    each = (counts[1] - counts[0]) / (many - few)
    rest = outcomes[0].scores[0].input_tokens - counts[0]
    return _Sizes(counts[0] - round(few * each), each, rest)


def _measure(target: Target, sizes: _Sizes, decisions: int, state_tokens: int) -> Cell:
    """Make one call over about so many state tokens, fewer where a prompt would pass the limit."""
    words = sizes.words(state_tokens)
    label = f"{decisions} of {state_tokens}"
    while True:
        try:
            with _followed_peak(target) as peak_mib:
                outcome = target.scorer.shared(_request(label, words, decisions))
        except OutOfMemory:
            failure = f"Out of memory: {decisions} decisions over {state_tokens} state tokens."
            return Cell(decisions, state_tokens, 0.0, 0, 0, None, target.resting_gib(), failure)
        except InvalidRequest as exc:
            over = _tokens_over(exc.message, target.max_tokens)
            if over <= 0 or words == 0:
                raise
            words = max(0, words - over)
            continue
        return Cell(
            decisions,
            state_tokens,
            outcome.timing.total_seconds,
            outcome.timing.branch_groups,
            max(scores.input_tokens for scores in outcome.scores),
            peak_mib[0] if peak_mib else None,
            target.resting_gib(),
        )


def _tokens_over(message: str, limit: int) -> int:
    counts = [int(number) for number in re.findall(r"\d+", message)]
    return max((count - limit for count in counts), default=0)


def _request(label: str, words: int, decisions: int) -> ScoreRequest:
    asked = tuple(
        Decision(f"d{place}", f"{QUESTION} ({place})", YES_NO)
        for place in range(10, 10 + decisions)
    )
    return ScoreRequest(f"Log {new_mark()}, {label}: on{WORD * words} off.", asked)


@contextlib.contextmanager
def _followed_peak(target: Target) -> Iterator[list[float]]:
    """Yield a list that holds the call's peak in MiB when the block has ended, in process."""
    found: list[float] = []
    if target.loaded is None:
        yield found
        return
    from semif_bento.engine.meter import PeakMeter

    with PeakMeter() as meter:
        yield found
    found.append(meter.peak_bytes / 2**20)


def _tell(cell: Cell) -> str:
    if cell.peak_mib is None:
        return f"{cell.reserved_gib:.2f} GiB reserved"
    return f"{cell.peak_mib:.0f} MiB over the weights"


def _tell_how(target: Target) -> str:
    if target.loaded is None:
        return (
            "Through a service only the memory reserved after a call is known (GET /health); a "
            "peak inside a call is not."
        )
    return (
        "Peaks are of the tensors a call makes, followed one by one; kernels' workspaces are not."
    )
