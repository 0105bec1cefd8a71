"""Follow what a forward allocates; knows nothing of models, budgets or requests."""

import weakref

import torch
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter


class PeakMeter(TorchDispatchMode):
    """Follows the storages allocated inside its `with` block.

    `peak_bytes` is the highest sum of those alive at once, `phase_peaks` the same for each value
    that `phase` had. Exact and repeatable on any device; blind to workspaces inside kernels.
    """

    def __init__(self) -> None:
        super().__init__()
        self.phase = ""
        self.phase_peaks: dict[str, int] = {}
        self._live_bytes = 0
        self._followed: set[int] = set()

    @property
    def peak_bytes(self) -> int:
        """Return the highest sum of followed bytes over all phases."""
        return max(self.phase_peaks.values(), default=0)

    def __torch_dispatch__(  # noqa: D105  torch's own protocol
        self,
        func: OpOverload[..., object],
        types: object,
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        if func._can_decompose():  # inference mode hides what is allocated within such operations
            with self:
                return func.decompose(*args, **(kwargs or {}))
        given = {_identity(t.untyped_storage()) for t in _tensors((args, kwargs))}
        result = func(*args, **(kwargs or {}))
        for tensor in _tensors(result):
            storage = tensor.untyped_storage()
            if _identity(storage) not in given:
                self._follow(storage)
        return result

    def _follow(self, storage: torch.UntypedStorage) -> None:
        key, size = _identity(storage), storage.nbytes()
        if key in self._followed:
            return
        self._followed.add(key)
        self._live_bytes += size
        peak = self.phase_peaks.get(self.phase, 0)
        self.phase_peaks[self.phase] = max(peak, self._live_bytes)
        weakref.finalize(storage, self._forget, key, size)

    def _forget(self, key: int, size: int) -> None:
        self._followed.discard(key)
        self._live_bytes -= size


def _identity(storage: torch.UntypedStorage) -> int:
    return storage._cdata


def _tensors(tree: object) -> list[torch.Tensor]:
    return [leaf for leaf in tree_iter(tree) if isinstance(leaf, torch.Tensor)]
