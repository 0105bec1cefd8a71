"""What every protocol's question comes down to, in words; knows nothing of protocols or engines.

How an engine words a question for its model is the engine's; how a protocol's question becomes one
of these is the protocol's.
"""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["yes_no", "choice", "levels"]


@dataclass(frozen=True, slots=True)
class Answerable:
    """One thing that a question may be answered with.

    `id` tells it from the others and never reaches a model. `label` is its name; `description` is
    what was said of it, "" where nothing was.
    """

    id: str
    label: str
    description: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a state, and its answers in order.

    `id` differs from those of the other questions of a request; `instructions` are "" where there
    are none. The options of `yes_no` are "true" and "false", labelled yes and no; those of `levels`
    are "0", "1", …, the lowest first, each described by its level's text.
    """

    id: str
    kind: Kind
    instructions: str
    options: tuple[Answerable, ...]
