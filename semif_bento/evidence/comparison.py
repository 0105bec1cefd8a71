"""Keep an acceptance as a file, and tell what moved since an earlier one, and whether it is noise.

Knows nothing of how the figures were found.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from semif_bento.errors import EvidenceError
from semif_bento.evidence.acceptance import Acceptance

FORMAT = "semif-bento acceptance 1"
NOISE, MOVED, SAME = "noise", "MOVED", "the same"
MEMORY_SHARE = 0.02
"""Peaks that differ by less are an allocator's, not a program's."""


@dataclass(frozen=True, slots=True)
class Movement:
    """One figure then and now, and whether the difference is noise."""

    name: str
    old: str
    new: str
    verdict: str


@dataclass(frozen=True, slots=True)
class EarlierReport:
    """What a report.json held."""

    content: Mapping[str, Any]

    def figures(self, check: str) -> Mapping[str, Any]:
        """Return a check's figures by its name; empty when that run had no such check."""
        for found in self.content["checks"]:
            if found["name"] == check:
                return found["figures"]
        return {}


def write_report(path: Path, found: Acceptance) -> None:
    """Write the file that a machine compares.

    Raises:
        EvidenceError: it cannot be written.
    """
    content = {"format": FORMAT, "passed": found.passed, **asdict(found)}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(content, indent=1, ensure_ascii=False)
        path.write_text(text + "\n", encoding="utf-8")
    except OSError as exc:
        raise EvidenceError(f"{path} cannot be written: {exc.strerror}.") from exc


def read_report(path: Path) -> EarlierReport:
    """Read what `write_report` wrote.

    Raises:
        EvidenceError: it cannot be read or is no such report.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as exc:
        raise EvidenceError(f"{path} cannot be read: {type(exc).__name__}.") from exc
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise EvidenceError(f"{path} is not a report of semif-bento accept.")
    return EarlierReport(content)


def compare_reports(old: EarlierReport, new: Acceptance) -> tuple[Movement, ...]:
    """Return what moved, in the order of a reader's questions.

    Logits are noise when no row moved by more than both runs' noise; times are noise when the
    ranges of both runs overlap; memory when it moved by less than 2 %.
    """
    movements = [_identity(name, old, new) for name in ("source", "revision", "dtype", "device")]
    movements += [_identity(name, old, new) for name in ("torch_version", "transformers_version")]
    movements = [movement for movement in movements if movement.verdict != SAME]
    movements += _logits(old, new)
    for check in new.checks:
        figures = old.figures(check.name)
        for kind in ("fresh", "known"):
            movements += _times(kind, figures, check.figures)
        for name in ("longest_prompt_mib", "largest_mib", "reserved_gib"):
            movements += _memory(name, figures, check.figures)
    was = {check["name"]: check["passed"] for check in old.content["checks"]}
    for check in new.checks:
        if was.get(check.name, check.passed) != check.passed:
            words = {True: "pass", False: "fail"}
            movements.append(
                Movement(check.name, words[was[check.name]], words[check.passed], MOVED)
            )
    return tuple(movements)


def _identity(name: str, old: EarlierReport, new: Acceptance) -> Movement:
    before, now = str(old.content["model"][name]), str(getattr(new.model, name))
    return Movement(f"model {name}", before, now, SAME if before == now else MOVED)


def _logits(old: EarlierReport, new: Acceptance) -> list[Movement]:
    before = {answer["row_sha256"]: answer["option_logits"] for answer in old.content["answers"]}
    both = [answer for answer in new.answers if answer.row_sha256 in before]
    if not both:
        return [Movement("rows in both runs", "0", "0", "nothing to compare")]
    gaps, flips = [], 0
    for answer in both:
        logits = before[answer.row_sha256]
        gaps.append(max(abs(a - b) for a, b in zip(logits, answer.option_logits, strict=True)))
        flips += logits.index(max(logits)) != answer.option_logits.index(max(answer.option_logits))
    noise = max(new.noise.allowed, _allowed(old.content["noise"]))
    verdict = SAME if not max(gaps) else NOISE if max(gaps) <= noise else MOVED
    return [
        Movement("largest logit gap, same rows", "–", f"{max(gaps):.3g} of {len(both)}", verdict),
        Movement("other winners, same rows", "–", str(flips), SAME if not flips else verdict),
    ]


def _allowed(noise: Mapping[str, float]) -> float:
    return max(noise.values())


def _times(kind: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Movement]:
    names = [f"{kind}_p50_s", f"{kind}_least_s", f"{kind}_most_s"]
    if not all(name in figures for name in names for figures in (old, new)):
        return []
    (before, least, most), (now, least_now, most_now) = ([f[n] for n in names] for f in (old, new))
    overlap = least_now <= most and least <= most_now
    change = f"{now * 1e3:.0f} ms ({now / before - 1:+.0%})"
    verdict = NOISE if overlap else MOVED
    return [Movement(f"21 criteria, {kind} state, p50", f"{before * 1e3:.0f} ms", change, verdict)]


def _memory(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Movement]:
    if name not in old or name not in new:
        return []
    before, now = old[name], new[name]
    moved = abs(now - before) > MEMORY_SHARE * before
    return [Movement(name, f"{before:.4g}", f"{now:.4g}", MOVED if moved else NOISE)]
