"""How much two right ways to compute one row differ; knows nothing of bars or reports."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from semif_bento.decisions import Scores
from semif_bento.protocol import NEAR_TIE_LOGITS

MANTISSA_BITS = {"bfloat16": 7, "float16": 10, "float32": 23}
ROUNDING_STEPS = 2


@dataclass(frozen=True, slots=True)
class Noise:
    """Largest logit differences (nats), and what they add up to.

    `repeated`: the same direct calls twice. `regrouped`: the same decisions of a shared call,
    alone and beside others. `rounding`: two steps of the data type at the largest logit, since
    each of two computations may round the last time the other way. `documented`: what the service
    itself calls a near tie.
    """

    repeated: float
    regrouped: float
    rounding: float
    documented: float

    @property
    def measured(self) -> float:
        """Return the largest difference that was seen."""
        return max(self.repeated, self.regrouped)

    @property
    def allowed(self) -> float:
        """Return the margin that counts as a near tie, and the gap that counts as agreement.

        What was measured on some rows is too low for the next ones, so it never goes below what
        the data type's rounding and the service's own near ties stand for.
        """
        return max(self.measured, self.rounding, self.documented)


def take_noise(repeated: float, regrouped: float, answers: Sequence[Scores], dtype: str) -> Noise:
    """Return the noise, with the two figures that depend on the data type filled in."""
    largest = max(abs(logit) for scores in answers for logit in scores.option_logits)
    return Noise(
        repeated,
        regrouped,
        ROUNDING_STEPS * rounding_step(largest, dtype),
        NEAR_TIE_LOGITS[dtype],
    )


def rounding_step(value: float, dtype: str) -> float:
    """Return the distance of neighbouring numbers of a data type around a positive value."""
    exponent = math.floor(math.log2(value)) if value else 0
    return 2.0 ** (exponent - MANTISSA_BITS[dtype])
