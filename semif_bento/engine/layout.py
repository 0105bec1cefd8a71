"""How suffixes of many branches lie in one flat batch; knows nothing of models or memory.

    flat tokens   [ a a a | b b b b | c c c c c c c | d d d d d d d d ]     T = sum of lengths
    runs          [  run of width 4 |            run of width 8          ]

Everything that looks at one token alone (embeddings, projections, MLPs, norms) works on the flat
tokens, so nothing is padded there. What mixes tokens (attention among a branch's own tokens, the
convolution, the recurrent state) works on runs: neighbours of similar length, right-padded.
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
    holds each flat token's padded place. `tokens` is the slice of the flat batch.
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
class BranchLayout:
    """A group of branches as flat tokens: positions, runs, and where each branch ends.

    `positions` (T,) int64 counts on from the prefix length; `ends` (B,) int64 are flat indices of
    each branch's last token, in the order the lengths were given.
    """

    positions: Tensor
    runs: tuple[Run, ...]
    ends: Tensor
    padded_tokens: int

    @classmethod
    def of(cls, lengths: Sequence[int], prefix_length: int, device: torch.device) -> "BranchLayout":
        """Lay out branches of the given lengths (each at least 1, ascending).

        Raises:
            ValueError: no branch, an empty one, or lengths that are not ascending.
        """
        if not lengths or min(lengths) < 1 or list(lengths) != sorted(lengths):
            raise ValueError("branch lengths must be positive and ascending")
        sizes = torch.tensor(lengths)
        ends = sizes.cumsum(0) - 1
        within = torch.cat([torch.arange(length) for length in lengths])
        runs = _runs(lengths, device)
        padded = sum(run.branches * run.width for run in runs)
        return cls((within + prefix_length).to(device), runs, ends.to(device), padded)


def padded_width(length: W) -> W:
    """Return the width class of a suffix length, or of many: the next multiple of RUN_STEP."""
    return -(-length // RUN_STEP) * RUN_STEP


def _runs(lengths: Sequence[int], device: torch.device) -> tuple[Run, ...]:
    runs, start, offset = [], 0, 0
    for end in range(1, len(lengths) + 1):
        if end == len(lengths) or padded_width(lengths[end]) != padded_width(lengths[start]):
            run = _run(lengths[start:end], offset, device)
            runs.append(run)
            start, offset = end, run.tokens.stop
    return tuple(runs)


def _run(lengths: Sequence[int], offset: int, device: torch.device) -> Run:
    sizes = torch.tensor(lengths)
    width, total = int(sizes.max()), int(sizes.sum())
    starts = sizes.cumsum(0) - sizes
    steps = torch.arange(width)
    gather = offset + starts[:, None] + torch.minimum(steps, sizes[:, None] - 1)  # (B, W)
    scatter = (steps < sizes[:, None]).reshape(-1).nonzero().reshape(-1)  # (T_run,)
    return Run(
        branches=len(lengths),
        width=width,
        tokens=slice(offset, offset + total),
        gather=gather.reshape(-1).to(device),
        scatter=scatter.to(device),
        is_dense=total == width * len(lengths),
    )
