"""Run one call's inputs through the model, beginning by beginning; knows nothing of texts."""

import time
from array import array
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TypeVar

import torch
from torch import Tensor, nn

from semif_bento.caller import Caller
from semif_bento.engine.backbone import Backbone
from semif_bento.engine.budget import BranchBudget
from semif_bento.engine.finite import finite
from semif_bento.engine.layout import padded_width
from semif_bento.engine.nli.encoding import EncodedInput
from semif_bento.engine.nli.sharing import Beginning
from semif_bento.engine.prefix import PrefixCache, PrefixState

T = TypeVar("T")

Triple = tuple[float, float, float]


class Run:
    """One call over distinct inputs: what has been answered, and what it took so far.

    Every state that was made is offered to the cache once all that starts from it came out finite,
    and is let go: a call may hold far more premises than memory holds states.

    Raises, from every method that runs something:
        ClientClosed: the caller left.
        ScoringFailed: a logit is not finite.
    """

    def __init__(
        self,
        backbone: Backbone,
        head: nn.Linear,
        budget: BranchBudget,
        cache: PrefixCache,
        inputs: Sequence[EncodedInput],
        caller: Caller,
    ) -> None:
        self._backbone, self._head, self._budget = backbone, head, budget
        self._cache, self._inputs, self._caller = cache, inputs, caller
        self._found: dict[int, Triple] = {}
        self.prefill_seconds = 0.0
        self.prefix_tokens = self.cached_tokens = self.suffix_tokens = 0
        self.padded_tokens = self.groups = 0

    def answers(self) -> list[Triple]:
        """Return each input's logits, once all have been run."""
        return [self._found[row] for row in range(len(self._inputs))]

    def beginnings(self, root: Beginning) -> None:
        """Run all inputs, each from the end of the beginning that it lies in."""
        self.whole(root.rows)
        for child in root.children:
            self._beginning(child, b"nli:", None, 0)

    def whole(self, rows: Sequence[int]) -> None:
        """Run inputs that share nothing, those of similar length together."""
        classes: dict[int, list[int]] = defaultdict(list)
        for row in rows:
            classes[padded_width(self._inputs[row].length)].append(row)
        for width, members in sorted(classes.items()):
            for group in self._budget.groups([width] * len(members), 0):
                chosen = [members[place] for place in group]
                ids = [self._after(row, 0) for row in chosen]
                hidden = self._forward(lambda ids=ids: self._backbone.wholes(ids))
                self._answer(chosen, hidden)
                self._count(ids, len(ids) * max(map(len, ids)))

    def _beginning(
        self, beginning: Beginning, path: bytes, parent: PrefixState | None, held_bytes: int
    ) -> None:
        """Run what begins so; `parent` is read and stays, `held_bytes` count it and those above."""
        if parent and not self._holds(beginning, parent, held_bytes):
            self._branches(parent, beginning.all_rows(), held_bytes - parent.bytes)
            return
        # The count keeps apart what was read at once and what was read in two steps: same tokens,
        # other roundings.
        key = path + array("I", [len(beginning.ids), *beginning.ids]).tobytes()
        known = self._cache.get(key)
        self.prefix_tokens += len(beginning.ids)
        if known:
            self.cached_tokens += len(beginning.ids)
        state = known or self._make(beginning, parent)
        self._branches(state, beginning.rows, held_bytes)
        for child in beginning.children:
            self._beginning(child, key, state, held_bytes + state.bytes)
        self._cache.put(key, state)

    def _make(self, beginning: Beginning, parent: PrefixState | None) -> PrefixState:
        started = time.perf_counter()
        if parent:
            state = self._forward(lambda: self._backbone.extend(parent, beginning.ids))
        else:
            state = self._forward(lambda: self._backbone.prefill(beginning.ids))
        if self._backbone.device.type == "cuda":
            torch.cuda.synchronize()  # or its time would be booked to the branches
        self.prefill_seconds += time.perf_counter() - started
        return state

    def _holds(self, beginning: Beginning, parent: PrefixState, held_bytes: int) -> bool:
        """Tell whether memory has room for a state of its own beside those it lies within."""
        above = held_bytes - parent.bytes
        own = self._budget.cost.state_bytes(beginning.length)
        longest = max(self._inputs[row].length for row in beginning.all_rows())
        return self._budget.holds(
            len(beginning.ids), parent.length, above + own
        ) and self._budget.holds(longest - beginning.length, beginning.length, held_bytes)

    def _branches(self, prefix: PrefixState, rows: Sequence[int], held_bytes: int) -> None:
        suffixes = {row: self._after(row, prefix.length) for row in rows}
        lengths = [len(suffixes[row]) for row in rows]
        for group in self._budget.groups(lengths, prefix.length, held_bytes):
            chosen = [rows[place] for place in group]
            ids = [suffixes[row] for row in chosen]
            hidden = self._forward(lambda ids=ids: self._backbone.branches(prefix, ids))
            self._answer(chosen, hidden)
            self._count(ids, self._backbone.padded_tokens([len(one) for one in ids]))

    def _after(self, row: int, start: int) -> tuple[int, ...]:
        """Return an input's ids from an index on."""
        given = self._inputs[row]
        edge = len(given.prefix_ids)
        if start >= edge:
            return given.suffix_ids[start - edge :]
        return given.prefix_ids[start:] + given.suffix_ids

    def _forward(self, run: Callable[[], T]) -> T:
        self._caller.require_presence()
        return run()

    def _count(self, ids: Sequence[Sequence[int]], padded_tokens: int) -> None:
        self.suffix_tokens += sum(map(len, ids))
        self.padded_tokens += padded_tokens
        self.groups += 1

    def _answer(self, rows: Sequence[int], hidden: Tensor) -> None:
        """Read the head at each row's hidden state, (B, hidden) → (B, 3)."""
        logits = finite(nn.functional.linear(hidden, self._head.weight, self._head.bias))
        for row, (c, e, n) in zip(rows, logits.tolist(), strict=True):
            self._found[row] = (c, e, n)
