"""Faults put into a scorer, and what its calls leave alive; knows nothing of what is expected."""

import sys
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from semif_bento.decisions import ScoreRequest
from semif_bento.engine.budget import BranchBudget
from semif_bento.engine.letters.scorer import TorchScorer


class Followed(TorchDispatchMode):
    """Follows every storage made within its `with` block; raises after the chosen operation.

    The error is made when it is raised and kept by nobody here: it would keep its frames alive.
    """

    def __init__(
        self, fail_after: int | None = None, error: Callable[[], Exception] = MemoryError
    ) -> None:
        super().__init__()
        self.operations = 0
        self._fail_after, self._error = fail_after, error
        self._made: list[weakref.ref[torch.UntypedStorage]] = []

    def alive(self) -> int:
        """Return how many of the followed storages still live."""
        return sum(ref() is not None for ref in self._made)

    def __torch_dispatch__(
        self, func: Any, types: object, args: tuple[object, ...] = (), kwargs: Any = None
    ) -> object:
        given = {storage._cdata for storage in _storages((args, kwargs))}
        result = func(*args, **(kwargs or {}))
        self._made += [weakref.ref(s) for s in _storages(result) if s._cdata not in given]
        self.operations += 1
        if self.operations == self._fail_after:
            raise self._error()
        return result


class RecordingDevice:
    """A device whose figures a test sets. Notes at each release what lives and what is handled."""

    def __init__(self, followed: Followed | None = None) -> None:
        self.reserved = 0
        self.followed = followed
        self.alive_at_release: list[int] = []
        self.handled_at_release: list[object] = []

    def allocated_bytes(self) -> int:
        return self.reserved

    def reserved_bytes(self) -> int:
        return self.reserved

    def release(self) -> None:
        self.alive_at_release.append(self.followed.alive() if self.followed else 0)
        self.handled_at_release.append(sys.exception())


def failing(
    function: Callable[..., Any], errors: dict[int, Callable[[], Exception]], calls: list[int]
) -> Callable[..., Any]:
    """Wrap a function: the real one runs, then its n-th call (from 1) raises `errors[n]()`.

    What it computed is still a local of the frame that raises, as in a real failure.
    """

    def wrapped(*args: object, **kwargs: object) -> object:
        result = function(*args, **kwargs)
        calls.append(len(calls) + 1)
        if calls[-1] in errors:
            raise errors[calls[-1]]()
        return result

    return wrapped


def narrow(scorer: TorchScorer, request: ScoreRequest, branches: int) -> None:
    """Give a scorer just the budget with which so many of a request's longest branches fit.

    It may be less than a server could start with: it bounds the groups, not a whole prompt.
    """
    cost = scorer._budget.cost
    encoded = scorer._encoder.encode(request)
    prefix = len(encoded.prefix_ids)
    longest = sorted(len(decision.suffix_ids) for decision in encoded.decisions)[-branches:]
    needed = cost.state_bytes(prefix) + cost.group_bytes(longest, prefix)
    scorer._budget = BranchBudget(cost, needed, max_tokens=1)


def _storages(tree: object) -> list[torch.UntypedStorage]:
    return [x.untyped_storage() for x in tree_leaves(tree) if isinstance(x, torch.Tensor)]
