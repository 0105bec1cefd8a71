"""A prefilled prefix and the bounded cache of them; knows nothing of requests or decisions."""

from collections import OrderedDict
from dataclasses import dataclass

from torch import Tensor, cat
from transformers.cache_utils import Cache, DynamicCache, DynamicLayer, LinearAttentionLayer

from semif_bento.decisions import PrefixCacheStatus
from semif_bento.errors import StartupError


@dataclass(frozen=True, slots=True)
class KeyValues:
    """A full-attention layer of a prefix: keys and values (1, H_kv, P, D)."""

    keys: Tensor
    values: Tensor


@dataclass(frozen=True, slots=True)
class RecurrentStates:
    """A linear-attention layer after a prefix: conv (1, C, K) and recurrent (1, H_v, D_k, D_v)."""

    conv: Tensor
    recurrent: Tensor
    conv_kernel_size: int


@dataclass(frozen=True, slots=True)
class PrefixState:
    """What a model knows after P tokens, layer by layer. Read-only: branches never write to it."""

    length: int
    layers: tuple[KeyValues | RecurrentStates, ...]

    @classmethod
    def of(cls, cache: Cache, length: int) -> "PrefixState":
        """Take over the tensors of a cache that has just been filled with `length` tokens.

        Raises:
            StartupError: a kind of cache layer that branches cannot share.
        """
        return cls(length, tuple(_layer(layer) for layer in cache.layers))

    @property
    def bytes(self) -> int:
        """Return the bytes its tensors hold."""
        return sum(t.numel() * t.element_size() for layer in self.layers for t in _tensors(layer))

    def keys(self) -> dict[int, Tensor]:
        """Return keys (1, H_kv, P, D) by index of the full-attention layers."""
        return {i: x.keys for i, x in enumerate(self.layers) if isinstance(x, KeyValues)}

    def values(self) -> dict[int, Tensor]:
        """Return values (1, H_kv, P, D) by index of the full-attention layers."""
        return {i: x.values for i, x in enumerate(self.layers) if isinstance(x, KeyValues)}

    def branches(self, count: int, *, with_prefix: bool) -> Cache:
        """Return a cache through which `count` branches read this prefix and store nothing.

        Args:
            count: branches in the batch.
            with_prefix: whether attention layers hand out prefix and suffix joined (views mode)
                or the suffix alone (cascade mode, where the prefix is attended to apart).
        """
        return Cache(layers=[_reader(layer, count, with_prefix) for layer in self.layers])

    def keeper(self, *, with_prefix: bool) -> Cache:
        """Return a cache that reads this prefix as one branch does, and keeps what comes after it.

        Once it has been filled, `PrefixState.of` makes the longer prefix of it.
        """
        return Cache(layers=[_keeper(layer, with_prefix) for layer in self.layers])


class ReadOnlyKeyValues(DynamicLayer):
    """An attention layer that reads a prefix through an expanded view and drops what is new."""

    def __init__(self, prefix: KeyValues, count: int, with_prefix: bool) -> None:
        super().__init__()
        self._prefix = prefix
        self.keys = prefix.keys.expand(count, -1, -1, -1)
        self.values = prefix.values.expand(count, -1, -1, -1)
        self.dtype, self.device = prefix.keys.dtype, prefix.keys.device
        self.is_initialized = True
        self._with_prefix = with_prefix

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        """Return what the layer attends to, (B, H_kv, S or P + S, D); nothing is stored."""
        if not self._with_prefix:
            return key_states, value_states
        count = key_states.shape[0]
        keys = self._prefix.keys.expand(count, -1, -1, -1)
        values = self._prefix.values.expand(count, -1, -1, -1)
        return cat([keys, key_states], dim=-2), cat([values, value_states], dim=-2)


class ReadOnlyStates(LinearAttentionLayer):
    """A linear-attention layer that starts every branch from a prefix's states and keeps none."""

    def __init__(self, prefix: RecurrentStates, count: int) -> None:
        super().__init__(1)
        self._prefix = prefix
        self.dtype, self.device = prefix.conv.dtype, prefix.conv.device
        self.conv_states[0] = prefix.conv.expand(count, -1, -1)
        self.recurrent_states[0] = prefix.recurrent.expand(count, -1, -1, -1)
        self.conv_kernel_size[0] = prefix.conv_kernel_size
        self.is_conv_states_initialized[0] = self.is_recurrent_states_initialized[0] = True
        self.has_previous_state[0] = True

    def update_conv_state(self, conv_states: Tensor, *args: object, **kwargs: object) -> Tensor:
        """Return the prefix's columns in front of the new ones; nothing is stored."""
        prefix = self._prefix.conv.expand(conv_states.shape[0], -1, -1)
        return cat([prefix, conv_states], dim=-1)

    def update_recurrent_state(
        self, recurrent_states: Tensor, *args: object, **kwargs: object
    ) -> Tensor:
        """Return the new state as it came; nothing is stored."""
        return recurrent_states


class KeepingKeyValues(ReadOnlyKeyValues):
    """An attention layer that reads a prefix as one branch and keeps prefix and branch, joined."""

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        """Return what `ReadOnlyKeyValues` returns; the prefix itself stays as it is."""
        self.keys = cat([self._prefix.keys, key_states], dim=-2)
        self.values = cat([self._prefix.values, value_states], dim=-2)
        return (self.keys, self.values) if self._with_prefix else (key_states, value_states)


class KeepingStates(ReadOnlyStates):
    """A linear-attention layer that starts one branch from a prefix's states and keeps its end."""

    def update_conv_state(self, conv_states: Tensor, *args: object, **kwargs: object) -> Tensor:
        """Return the prefix's columns in front of the new ones, whose last are kept."""
        joined = super().update_conv_state(conv_states)
        # A copy: a view would keep every column of the branch alive.
        self.conv_states[0] = joined[..., -self._prefix.conv.shape[-1] :].clone()
        return joined

    def update_recurrent_state(
        self, recurrent_states: Tensor, *args: object, **kwargs: object
    ) -> Tensor:
        """Return the new state as it came, and keep it."""
        self.recurrent_states[0] = recurrent_states
        return recurrent_states


class PrefixCache:
    """Prefilled states by exact prefix, least recently used out first, never over its bytes."""

    def __init__(self, capacity_bytes: int) -> None:
        self._capacity_bytes = capacity_bytes
        self._states: OrderedDict[bytes, PrefixState] = OrderedDict()
        self._bytes = self._hits = self._misses = 0

    def get(self, key: bytes) -> PrefixState | None:
        """Return the state of an equal prefix and mark it used, or None; counts hit or miss."""
        state = self._states.get(key)
        if state is None:
            self._misses += 1
            return None
        self._hits += 1
        self._states.move_to_end(key)
        return state

    def put(self, key: bytes, state: PrefixState) -> None:
        """Keep a state, pushing out the least recently used; one over the capacity is not kept."""
        size = state.bytes
        if key in self._states or size > self._capacity_bytes:
            return
        while self._bytes + size > self._capacity_bytes:
            _, oldest = self._states.popitem(last=False)
            self._bytes -= oldest.bytes
        self._states[key] = state
        self._bytes += size

    def clear(self) -> bool:
        """Drop every state; tell whether there was any."""
        held = bool(self._states)
        self._states.clear()
        self._bytes = 0
        return held

    def status(self) -> PrefixCacheStatus:
        """Return entries, bytes, capacity and the counts so far."""
        return PrefixCacheStatus(
            len(self._states), self._bytes, self._capacity_bytes, self._hits, self._misses
        )


def new_cache(config: object) -> DynamicCache:
    """Return an empty cache for one prefill of a model with this configuration."""
    return DynamicCache(config=config)  # pyright: ignore[reportArgumentType]  any model's


def _layer(layer: object) -> KeyValues | RecurrentStates:
    kind = type(layer)  # a subclass, such as a sliding window, may keep less than it was given
    if isinstance(layer, DynamicLayer) and kind in (DynamicLayer, KeepingKeyValues):
        if layer.keys is not None and layer.values is not None:
            return KeyValues(layer.keys, layer.values)
    elif isinstance(layer, LinearAttentionLayer) and kind in (LinearAttentionLayer, KeepingStates):
        conv, recurrent = layer.conv_states[0], layer.recurrent_states[0]
        kernel_size = layer.conv_kernel_size[0]
        if conv is not None and recurrent is not None and kernel_size is not None:
            return RecurrentStates(conv, recurrent, kernel_size)
    raise StartupError(f"A {type(layer).__name__} cannot be shared between branches.")


def _reader(
    layer: KeyValues | RecurrentStates, count: int, with_prefix: bool
) -> ReadOnlyKeyValues | ReadOnlyStates:
    if isinstance(layer, KeyValues):
        return ReadOnlyKeyValues(layer, count, with_prefix)
    return ReadOnlyStates(layer, count)


def _keeper(
    layer: KeyValues | RecurrentStates, with_prefix: bool
) -> KeepingKeyValues | KeepingStates:
    if isinstance(layer, KeyValues):
        return KeepingKeyValues(layer, 1, with_prefix)
    return KeepingStates(layer, 1)


def _tensors(layer: KeyValues | RecurrentStates) -> tuple[Tensor, Tensor]:
    if isinstance(layer, KeyValues):
        return layer.keys, layer.values
    return layer.conv, layer.recurrent
