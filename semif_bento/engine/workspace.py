"""What the engines of one process share: the device's memory, the prefix cache and the guard.

Knows nothing of models. One call runs at a time, so each engine may use the whole branch budget.
"""

from dataclasses import dataclass

from semif_bento.decisions import EngineStatus
from semif_bento.engine.backbone import Backbone
from semif_bento.engine.budget import BranchBudget
from semif_bento.engine.memory import (
    GIB,
    MIB,
    CpuMemory,
    CudaMemory,
    DeviceMemory,
    MemoryGuard,
)
from semif_bento.engine.prefix import PrefixCache
from semif_bento.settings import Settings


@dataclass(frozen=True, slots=True)
class Workspace:
    """One device's memory, one prefix cache on it, and the guard around every call.

    `weight_bytes` is what the weights of all engines take.
    """

    memory: DeviceMemory
    weight_bytes: int
    prefix_cache: PrefixCache
    guard: MemoryGuard

    @classmethod
    def of(cls, settings: Settings) -> "Workspace":
        """Return the workspace of the configured device, its cache empty.

        Call it when the weights of every engine are loaded, and nothing else of theirs yet.
        """
        memory: DeviceMemory = CudaMemory() if settings.device == "cuda" else CpuMemory()
        cache = PrefixCache(settings.prefix_cache_mib * MIB)
        return cls(memory, memory.allocated_bytes(), cache, MemoryGuard(memory, cache))

    def budget_bytes(self, settings: Settings) -> int:
        """Return the bytes for a state and its branches, fixed from now on.

        Under a VRAM cap: what the cap leaves beside all weights, what rests idle after warm-up,
        and the prefix cache. Without one: the setting.
        """
        if settings.vram_cap_gib is None:
            return settings.branch_budget_mib * MIB
        # What stays reserved beside live tensors after a release: workspaces of libraries.
        self.memory.release()
        idle = max(0, self.memory.reserved_bytes() - self.memory.allocated_bytes())
        cache = settings.prefix_cache_mib * MIB
        return int(settings.vram_cap_gib * GIB) - self.weight_bytes - idle - cache

    def status(
        self, backbone: Backbone, budget: BranchBudget, device_name: str, kernels: str
    ) -> EngineStatus:
        """Report memory, cache and what an engine runs on; safe from any thread at any time."""
        return EngineStatus(
            device_name=device_name,
            allocated_gib=self.memory.allocated_bytes() / GIB,
            reserved_gib=self.memory.reserved_bytes() / GIB,
            linear_attention_kernels=kernels,
            branch_attention=backbone.branch_attention,
            matrix_products=backbone.matrix_products,
            branch_budget_mib=budget.budget_bytes / MIB,
            prefix_cache=self.prefix_cache.status(),
        )

    def rest(self) -> None:
        """Hand back what start-up left idle, and take what is reserved then as the baseline."""
        self.memory.release()
        self.guard.fix_baseline()
