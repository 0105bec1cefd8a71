"""Run a causal LM's layers over a whole prompt, a prefix, or many branches of it.

Knows tokens and tensors; knows nothing of letters, requests, limits or memory. The model handed in
stays as it is: a twin with the same parameters carries our attention and linear layers, so the
untouched model can still serve as the reference in the same process.
"""

import copy
import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.models.qwen3_5.modeling_qwen3_5 import Qwen3_5GatedDeltaNet

from semif_bento.engine.attention import CASCADE, MAX_FLASH_HEAD_DIM, BranchContext
from semif_bento.engine.delta import branch_delta_layers
from semif_bento.engine.layout import BranchLayout, Path, Stem
from semif_bento.engine.linear import has_native_products, widen_linears
from semif_bento.engine.prefix import PrefixState, new_cache
from semif_bento.errors import StartupError

BranchAttention = Literal["cascade", "views"]


@dataclass(frozen=True, slots=True)
class BranchStates:
    """Hidden states (N, hidden) of branches; `paths[b].place(t)` is the row of b's token t."""

    hidden: Tensor
    paths: tuple[Path, ...]


class Backbone:
    """A model's layers without its head. Not thread-safe.

    Raises:
        StartupError: the architecture cannot run on torch's scaled-dot-product attention.
    """

    def __init__(self, model: PreTrainedModel, branch_attention: BranchAttention) -> None:
        self.branch_attention: BranchAttention = branch_attention
        self.config = model.config.get_text_config()
        self.device = next(model.parameters()).device
        self.dtype = next(model.parameters()).dtype
        twin = _twin(model)
        self.matrix_products = "native"
        if not has_native_products(self.device, self.dtype):
            self.matrix_products = "float32"
            widen_linears(twin.base_model)
        if branch_attention == "cascade":
            branch_delta_layers(twin.base_model)
        try:
            twin.set_attn_implementation(CASCADE if branch_attention == "cascade" else "sdpa")
        except ValueError:
            raise StartupError(
                f"{type(model).__name__} has no scaled-dot-product attention in transformers."
            ) from None
        self._layers = twin.base_model

    def recurrent_layers(self) -> list[nn.Module]:
        """Return the layers that carry a recurrent state; empty for pure attention models."""
        return [m for m in self._layers.modules() if isinstance(m, Qwen3_5GatedDeltaNet)]

    def whole(self, ids: Sequence[int]) -> Tensor:
        """Run one whole prompt without a cache; return its last hidden state (1, hidden)."""
        hidden = self._layers(input_ids=self._ids(ids), use_cache=False).last_hidden_state
        return hidden[:, -1]

    def wholes(self, rows: Sequence[Sequence[int]]) -> Tensor:
        """Run whole prompts together, without a cache.

        Args:
            rows: B token sequences, each at least 1 long. They are padded to the longest.

        Returns:
            Each row's hidden state at its own last token, (B, hidden).
        """
        width = max(len(row) for row in rows)
        # Right padding never reaches a real token: everything that mixes tokens is causal.
        padded = torch.tensor([[*row, *[row[-1]] * (width - len(row))] for row in rows])
        hidden = self._layers(input_ids=padded.to(self.device), use_cache=False).last_hidden_state
        ends = torch.tensor([len(row) - 1 for row in rows], device=self.device)
        return hidden[torch.arange(len(rows), device=self.device), ends]

    def prefill(self, ids: Sequence[int]) -> PrefixState:
        """Run a prefix once and return what the model knows after it."""
        cache = new_cache(self.config)
        self._layers(input_ids=self._ids(ids), cache=cache, use_cache=True)
        return PrefixState.of(cache, len(ids))

    def extend(self, prefix: PrefixState, ids: Sequence[int]) -> PrefixState:
        """Run more tokens after a prefix and return what the model knows after them.

        Args:
            prefix: the state after P tokens; it is read, never written.
            ids: 2 tokens or more; upstream takes another path for one, which writes in place.

        Raises:
            ValueError: fewer than 2 tokens.
        """
        if len(ids) < 2:
            raise ValueError("a prefix is extended by two tokens or more")
        layout = BranchLayout.of([len(ids)], prefix.length, self.device)
        is_cascade = self.branch_attention == "cascade"
        keeper = prefix.keeper(with_prefix=not is_cascade)
        extra = {}
        if is_cascade:
            extra["branches"] = BranchContext(layout, prefix.keys(), prefix.values(), True)
        self._layers(
            input_ids=self._ids(ids),
            position_ids=layout.positions[None],
            cache=keeper,
            use_cache=True,
            **extra,
        )
        return PrefixState.of(keeper, prefix.length + len(ids))

    def branches(self, prefix: PrefixState, suffixes: Sequence[Sequence[int]]) -> Tensor:
        """Run branches of one prefix together.

        Args:
            prefix: the state after P tokens; it is read, never written.
            suffixes: B token sequences in ascending order of length, each at least 1 long.

        Returns:
            Each branch's hidden state at its own last token, (B, hidden).
        """
        states = self.branch_states(prefix, suffixes)
        ends = [path.place(path.length - 1) for path in states.paths]
        return states.hidden[torch.tensor(ends, device=self.device)]

    def branch_states(
        self,
        prefix: PrefixState,
        suffixes: Sequence[Sequence[int]],
        stems: Sequence[Stem] | None = None,
    ) -> BranchStates:
        """Run branches of one prefix together, and keep the hidden states of all their tokens.

        Args:
            prefix: the state after P tokens; it is read, never written.
            suffixes: B token sequences in ascending order of length, each at least 1 long.
            stems: what each of them begins with, if they share beginnings. Where prefixes are read
                in place, the layers run a stem once for all the branches that share it.

        Raises:
            ValueError: a branch is no longer than a stem that it shares.
        """
        lengths = [len(suffix) for suffix in suffixes]
        layout = BranchLayout.of(lengths, prefix.length, self.device, stems)
        if self.branch_attention == "cascade":
            return BranchStates(self._cascade(prefix, layout, suffixes), layout.paths)
        hidden, width = self._views(prefix, suffixes)
        paths = (Path(length, 0, 0, 0, row * width) for row, length in enumerate(lengths))
        return BranchStates(hidden, tuple(paths))

    def padded_tokens(self, lengths: Sequence[int]) -> int:
        """Return the tokens that mixing layers compute for branches of these lengths."""
        if self.branch_attention == "views":
            return len(lengths) * max(2, *lengths)
        return BranchLayout.of(lengths, 0, torch.device("cpu")).padded_tokens

    def _cascade(
        self, prefix: PrefixState, layout: BranchLayout, suffixes: Sequence[Sequence[int]]
    ) -> Tensor:
        """Return the hidden states of all flat tokens, (T, hidden)."""
        own = [s[path.first :] for s, path in zip(suffixes, layout.paths, strict=True)]
        return self._layers(
            input_ids=self._ids([token for ids in own for token in ids]),
            position_ids=layout.positions[None],
            cache=prefix.branches(1, with_prefix=False),
            use_cache=True,
            branches=BranchContext(layout, prefix.keys(), prefix.values()),
        ).last_hidden_state[0]

    def _views(self, prefix: PrefixState, suffixes: Sequence[Sequence[int]]) -> tuple[Tensor, int]:
        """Return the hidden states of branches padded to W tokens, (B * W, hidden), and W."""
        count, longest = len(suffixes), max(len(suffix) for suffix in suffixes)
        width = max(2, longest)  # one-token continuations take another path upstream
        padded = [[*suffix, *[suffix[-1]] * (width - len(suffix))] for suffix in suffixes]
        steps = torch.arange(prefix.length, prefix.length + width, device=self.device)
        hidden = self._layers(
            input_ids=torch.tensor(padded, device=self.device),  # (B, W)
            position_ids=steps[None].expand(count, -1),
            cache=prefix.branches(count, with_prefix=True),
            use_cache=True,
        ).last_hidden_state
        return hidden.reshape(count * width, -1), width

    def _ids(self, ids: Sequence[int]) -> Tensor:
        return torch.tensor([ids], dtype=torch.long, device=self.device)


def choose_branch_attention(
    model: PreTrainedModel, wanted: Literal["auto", "cascade", "views"] = "auto"
) -> BranchAttention:
    """Return what is wanted; for "auto", "cascade" where model and device allow it, else "views".

    Cascade needs plain softmax attention in every attention layer (no soft-capping, sinks or
    sliding window) and a kernel that returns the log-sum-exp for this head size.
    """
    if wanted != "auto":
        return wanted
    config = model.config.get_text_config()
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    special = (
        "attn_logit_softcapping",
        "sliding_window",
        "attention_sinks",
        "attention_chunk_size",
    )
    head_dim = getattr(config, "head_dim", None) or (
        config.hidden_size // config.num_attention_heads
    )
    plain = kinds <= {"full_attention", "linear_attention"} and not any(
        getattr(config, name, None) for name in special
    )
    takes_extra = "kwargs" in inspect.signature(type(model.base_model).forward).parameters
    fits = next(model.parameters()).device.type == "cpu" or head_dim <= MAX_FLASH_HEAD_DIM
    return "cascade" if plain and takes_extra and fits else "views"


def _twin(model: PreTrainedModel) -> PreTrainedModel:
    """Copy a model's modules while sharing every parameter and buffer with it."""
    shared: dict[int, Tensor | nn.Parameter] = {}
    for tensor in (*model.parameters(), *model.buffers()):
        shared[id(tensor)] = tensor
    return copy.deepcopy(model, shared)
