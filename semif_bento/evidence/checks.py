"""The first four checks: parity, noise, negative control, shared against direct.

Knows answers and what they must agree on; knows nothing of how they were scored or shown.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from semif_bento.decisions import Option
from semif_bento.evidence.agreement import Agreement, Flip
from semif_bento.evidence.noise import Noise
from semif_bento.evidence.rows import Row

Figure = float | int | str
CONTROL_SHARE = 0.1
CONTROL_WINNERS = 0.5


@dataclass(frozen=True, slots=True)
class Check:
    """One check: what was found, what it had to be, and the figures that a machine compares."""

    name: str
    passed: bool
    number: str
    bar: str
    figures: Mapping[str, Figure]
    notes: tuple[str, ...] = ()


def check_parity(found: Agreement, noise: Noise, rows: int) -> Check:
    """Judge our direct answers against SemIf's, for those of the rows that it has answered."""
    passed = found.hashes == found.rows and not found.disagreements and found.gap <= noise.allowed
    return Check(
        "1 parity with SemIf",
        passed,
        f"{found.hashes}/{found.rows} prompt hashes, {found.winners}/{found.rows} winners, "
        f"{_ties(found)}largest gap {found.gap:.3g} logits, {found.probability_gap:.3g} "
        "probability",
        f"all hashes; no other winner but on a near tie; gap up to {noise.allowed:.3g}",
        _figures(found),
        (
            *([f"{found.rows} of {rows} rows have a reference."] if found.rows < rows else []),
            *_tell_flips(found, "SemIf"),
        ),
    )


def check_noise(noise: Noise, rows: int) -> Check:
    """Judge whether the same calls, made twice for so many rows, give the same bits."""
    return Check(
        "2 noise floor",
        noise.repeated == 0,
        f"{rows} rows run twice: {noise.repeated:.3g} logits; alone or beside others: "
        f"{noise.regrouped:.3g}",
        "run twice: the same bits",
        {
            "rows": rows,
            "repeated_gap": noise.repeated,
            "regrouped_gap": noise.regrouped,
            "rounding": noise.rounding,
            "documented": noise.documented,
            "allowed": noise.allowed,
        },
        (
            f"A near tie is a margin up to {noise.allowed:.3g} logits, the largest of: measured "
            f"{noise.measured:.3g}, two rounding steps {noise.rounding:.3g}, the service's own "
            f"near tie {noise.documented:.3g}.",
        ),
    )


def check_control(found: Agreement, noise: Noise, at_chance: bool, seed: int) -> Check:
    """Judge whether shuffled descriptions break the agreement with our own answers.

    A comparison that shuffled options pass as well would prove nothing. Winners are judged only
    for a model that is better than guessing: one at chance picks a letter, whatever stands there.
    """
    close, rows = found.within(noise.allowed), found.rows
    passed = close <= CONTROL_SHARE * rows
    if not at_chance:
        passed = passed and found.winners <= CONTROL_WINNERS * rows
    notes = []
    if at_chance:
        notes.append(
            "The model is at chance, so its winners follow the letters, not the descriptions; "
            "they are not judged."
        )
    if not passed:
        notes.append(
            "Shuffled options move this model's answers too little to be told from noise, so "
            "agreement in checks 1 and 4 proves the prompts and little more."
        )
    return Check(
        "3 negative control",
        passed,
        f"descriptions shuffled: {close}/{rows} rows still agree, {found.winners}/{rows} winners, "
        f"{found.hashes}/{rows} hashes",
        f"at most {CONTROL_SHARE:.0%} of rows agree"
        + ("" if at_chance else f" and at most {CONTROL_WINNERS:.0%} of winners"),
        {**_figures(found), "agreeing": close, "seed": seed},
        tuple(notes),
    )


def check_shared(found: Agreement, noise: Noise) -> Check:
    """Judge shared answers against direct ones."""
    return Check(
        "4 shared against direct",
        not found.disagreements and found.gap <= noise.allowed and found.hashes == found.rows,
        f"{found.winners}/{found.rows} winners, {_ties(found)}largest gap {found.gap:.3g} logits",
        f"no other winner but on a near tie; gap up to {noise.allowed:.3g}",
        _figures(found),
        _tell_flips(found, "direct"),
    )


def shuffle_descriptions(rows: Sequence[Row], seed: int) -> list[Row]:
    """Return the rows with the descriptions of each moved to other options; ids stay in place.

    No description that differs from the others keeps its place.
    """
    source = random.Random(seed)
    return [_shuffle(row, source) for row in rows]


def _shuffle(row: Row, source: random.Random) -> Row:
    options = row.decision.options
    order = list(range(len(options)))
    source.shuffle(order)
    # One cycle through all places in random order: nothing stays where it was.
    target = dict(zip(order, (*order[1:], order[0]), strict=True))
    moved = tuple(
        Option(option.id, options[target[place]].description)
        for place, option in enumerate(options)
    )
    return replace(row, decision=replace(row.decision, options=moved))


def _figures(found: Agreement) -> dict[str, Figure]:
    return {
        "rows": found.rows,
        "hashes": found.hashes,
        "winners": found.winners,
        "near_ties": len(found.near_ties),
        "disagreements": len(found.disagreements),
        "largest_logit_gap": found.gap,
        "largest_probability_gap": found.probability_gap,
    }


def _ties(found: Agreement) -> str:
    if found.winners == found.rows:
        return ""
    return f"{len(found.near_ties)} near ties, {len(found.disagreements)} disagreements, "


def _tell_flips(found: Agreement, other: str) -> tuple[str, ...]:
    def tell(kind: str, flip: Flip) -> str:
        return (
            f"{kind} {flip.row_id}: {flip.ours} here, {flip.theirs} by {other}; margin "
            f"{flip.margin:.3g}, gap {flip.gap:.3g} logits"
        )

    ties = [tell("near tie", flip) for flip in found.near_ties]
    return (*(tell("DISAGREEMENT", flip) for flip in found.disagreements), *ties)
