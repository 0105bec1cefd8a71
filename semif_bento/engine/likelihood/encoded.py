"""An encoded request, as it travels from the encoder to the reader; knows nothing of texts."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

Ids = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Context:
    """What comes before options: ids that all questions share, and each question's own rest."""

    prefix_ids: Ids
    questions: tuple[Ids, ...]

    def cache_key(self) -> bytes:
        """Return the prefix ids as bytes: equal keys mean equal prefixes, of this engine."""
        return b"likelihood:" + array("I", self.prefix_ids).tobytes()


@dataclass(frozen=True, slots=True)
class EncodedOptions:
    """A decision's distinct options in canonical order, shortest first, then by ids.

    `place[k]` is where the caller's k-th option is found among them.
    """

    distinct: tuple[Ids, ...]
    place: tuple[int, ...]

    @classmethod
    def of(cls, options: Sequence[Ids]) -> "EncodedOptions":
        """Order the options' ids such that the order in which they were given leaves no trace."""
        distinct = sorted(set(options), key=lambda ids: (len(ids), ids))
        places = {ids: index for index, ids in enumerate(distinct)}
        return cls(tuple(distinct), tuple(places[ids] for ids in options))


@dataclass(frozen=True, slots=True)
class EncodedRequest:
    """The questions behind their state and behind none, and each one's options and hash."""

    state: Context
    prior: Context
    options: tuple[EncodedOptions, ...]
    hashes: tuple[str, ...]

    def input_tokens(self, index: int) -> int:
        """Return a decision's tokens: state, question and every distinct option, each once."""
        options = sum(map(len, self.options[index].distinct))
        return len(self.state.prefix_ids) + len(self.state.questions[index]) + options
