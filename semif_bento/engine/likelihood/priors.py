"""What options are worth without a state, kept between requests; knows nothing of models.

The numbers lie on the host and depend on the questions and options of one request alone, so a
request that comes again, about whatever state, finds the bits that it would compute.
"""

import hashlib
from array import array
from collections import OrderedDict
from collections.abc import Sequence

from semif_bento.engine.likelihood.encoded import EncodedRequest

LogProbs = tuple[tuple[float, ...], ...]
"""Of each decision, the log-probability of each distinct option, in nats."""

MAX_NUMBERS = 2**17
"""Log-probabilities kept, some MiB of host memory; the least recently used go first."""


class PriorCache:
    """Log-probabilities by what they were computed for, never over its count of numbers."""

    def __init__(self, max_numbers: int = MAX_NUMBERS) -> None:
        self._max_numbers = max_numbers
        self._kept: OrderedDict[bytes, LogProbs] = OrderedDict()
        self._numbers = 0

    def get(self, key: bytes) -> LogProbs | None:
        """Return what is kept for an equal key and mark it used, or None."""
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
        return found

    def put(self, key: bytes, log_probs: LogProbs) -> None:
        """Keep log-probabilities, pushing out the least recently used; too many are not kept."""
        count = _count(log_probs)
        if key in self._kept or count > self._max_numbers:
            return
        while self._numbers + count > self._max_numbers:
            _, oldest = self._kept.popitem(last=False)
            self._numbers -= _count(oldest)
        self._kept[key] = log_probs
        self._numbers += count

    def clear(self) -> None:
        """Drop everything."""
        self._kept.clear()
        self._numbers = 0


def prior_key(encoded: EncodedRequest) -> bytes:
    """Return a hash of every token that a request's priors depend on, in order.

    All decisions of a request make one key: run together, they are answered by few forwards, whose
    roundings depend on all of them.
    """
    found = hashlib.sha256()
    rows: list[Sequence[int]] = [encoded.prior.prefix_ids]
    for question, options in zip(encoded.prior.questions, encoded.options, strict=True):
        rows += [question, *options.distinct, ()]
    for row in rows:
        found.update(array("I", [len(row), *row]).tobytes())
    return found.digest()


def _count(log_probs: LogProbs) -> int:
    return sum(map(len, log_probs))
