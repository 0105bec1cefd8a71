"""A typed question as compatible protocols ask it, before any engine words it.

Knows nothing of protocols' bodies, prompts or scores.
"""

from dataclasses import dataclass
from typing import Literal

TRUE, FALSE = "true", "false"
"""Ids of the options of a yes/no question, in this order."""


@dataclass(frozen=True, slots=True)
class Answerable:
    """One answer that is offered: what it is called, and what is said of it ("" for nothing)."""

    id: str
    label: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its possible answers, in the order they were sent.

    `instructions` is "" where nothing is said. Options of a `yes_no` are called yes and no; those
    of `levels` are called by their number from 0, the lowest first.
    """

    id: str
    kind: Literal["yes_no", "choice", "levels"]
    instructions: str
    options: tuple[Answerable, ...]
