"""How suffixes of many branches lie in one flat batch; knows nothing of models or memory.

    flat tokens   [ a a a | b b b b | c c c c c c c | d d d d d d d d ]     T = sum of lengths
    runs          [  run of width 4 |            run of width 8          ]

Everything that looks at one token alone (embeddings, projections, MLPs, norms) works on the flat
tokens, so nothing is padded there. What mixes tokens (attention among a branch's own tokens, the
convolution, the recurrent state) works on runs: neighbours of similar length, right-padded.

Branches may share a stem, the tokens that they begin with. It lies in the flat batch once, before
the rest of the first of them; runs read it from there for each of them:

    flat tokens   [ s s s a | b b | c c c c ]     three branches: s s s a, s s s b b, s s s c c c c
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

W = TypeVar("W", int, NDArray[np.int64])

RUN_STEP = 32
"""Lengths within one run differ by less than this; the recurrent kernel pads to 64 anyway."""


@dataclass(frozen=True, slots=True)
class Run:
    """B neighbouring branches padded to W tokens.

    `gather` (B*W,) int64 holds each padded place's flat token (padding repeats a branch's last
    token: right padding never reaches a real token under causal mixing). `scatter` (T_run,) int64
    holds a padded place of each flat token, which is `tokens` of the flat batch.
    """

    branches: int
    width: int
    tokens: slice
    gather: Tensor
    scatter: Tensor
    is_dense: bool

    def pad(self, flat: Tensor) -> Tensor:
        """Map flat tokens (T, ...) to this run's branches (B, W, ...)."""
        shape = (self.branches, self.width, *flat.shape[1:])
        if self.is_dense:
            return flat[self.tokens].reshape(shape)
        return flat.index_select(0, self.gather).reshape(shape)

    def unpad(self, padded: Tensor) -> Tensor:
        """Map branches (B, W, ...) back to this run's flat tokens (T_run, ...)."""
        flat = padded.reshape(self.branches * self.width, *padded.shape[2:])
        return flat if self.is_dense else flat.index_select(0, self.scatter)


@dataclass(frozen=True, slots=True)
class Stem:
    """What a branch begins with: branches with an equal `key` share their first `tokens` tokens."""

    key: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Path:
    """Where a branch lies: `stem_tokens` from flat index `stem` on, the rest from `rest` on.

    `first` is the first of its tokens that no branch before it has.
    """

    length: int
    first: int
    stem: int
    stem_tokens: int
    rest: int

    def place(self, token: int) -> int:
        """Return the flat index of the branch's token, counted from 0."""
        inside = token < self.stem_tokens
        return self.stem + token if inside else self.rest + token - self.stem_tokens


@dataclass(frozen=True, slots=True)
class BranchLayout:
    """A group of branches as flat tokens: positions, runs, and where each branch lies and ends.

    `positions` (T,) int64 counts on from the prefix length; `ends` (B,) int64 are flat indices of
    each branch's last token, in the order the lengths were given, as are `paths`.
    """

    positions: Tensor
    runs: tuple[Run, ...]
    ends: Tensor
    paths: tuple[Path, ...]
    padded_tokens: int

    @classmethod
    def of(
        cls,
        lengths: Sequence[int],
        prefix_length: int,
        device: torch.device,
        stems: Sequence[Stem] | None = None,
    ) -> "BranchLayout":
        """Lay out branches of the given lengths (each at least 1, ascending, its stem included).

        Raises:
            ValueError: no branch, an empty one, lengths that are not ascending, or a branch that
                is no longer than the stem that it shares with one before it.
        """
        if not lengths or min(lengths) < 1 or list(lengths) != sorted(lengths):
            raise ValueError("branch lengths must be positive and ascending")
        paths = _paths(lengths, stems or [Stem(index, 0) for index in range(len(lengths))])
        within = torch.cat([torch.arange(path.first, path.length) for path in paths])
        ends = torch.tensor([path.place(path.length - 1) for path in paths])
        runs = _runs(paths, device)
        padded = sum(run.branches * run.width for run in runs)
        return cls((within + prefix_length).to(device), runs, ends.to(device), paths, padded)


def padded_width(length: W) -> W:
    """Return the width class of a suffix length, or of many: the next multiple of RUN_STEP."""
    return -(-length // RUN_STEP) * RUN_STEP


def _paths(lengths: Sequence[int], stems: Sequence[Stem]) -> tuple[Path, ...]:
    paths: list[Path] = []
    known: dict[int, int] = {}
    end = 0
    for length, stem in zip(lengths, stems, strict=True):
        if stem.key in known:
            if length <= stem.tokens:
                raise ValueError("a branch must be longer than a stem that it shares")
            paths.append(Path(length, stem.tokens, known[stem.key], stem.tokens, end))
            end += length - stem.tokens
        else:
            known[stem.key] = end
            paths.append(Path(length, 0, end, stem.tokens, end + stem.tokens))
            end += length
    return tuple(paths)


def _runs(paths: Sequence[Path], device: torch.device) -> tuple[Run, ...]:
    widths = [padded_width(path.length) for path in paths]
    runs, start, offset = [], 0, 0
    for end in range(1, len(paths) + 1):
        if end == len(paths) or widths[end] != widths[start]:
            run = _run(paths[start:end], offset, device)
            runs.append(run)
            start, offset = end, run.tokens.stop
    return tuple(runs)


def _run(paths: Sequence[Path], offset: int, device: torch.device) -> Run:
    columns = [(p.length, p.first, p.stem, p.stem_tokens, p.rest) for p in paths]
    sizes, firsts, stems, stem_tokens, rests = torch.tensor(columns).T.unsqueeze(-1)  # (B, 1) each
    width, total = int(sizes.max()), int((sizes - firsts).sum())
    steps = torch.arange(width)
    places = torch.minimum(steps, sizes - 1)  # (B, W)
    gather = torch.where(places < stem_tokens, stems + places, rests + places - stem_tokens)
    scatter = ((steps >= firsts) & (steps < sizes)).reshape(-1).nonzero().reshape(-1)  # (T_run,)
    return Run(
        branches=len(paths),
        width=width,
        tokens=slice(offset, offset + total),
        gather=gather.reshape(-1).to(device),
        scatter=scatter.to(device),
        is_dense=total == width * len(paths),
    )
