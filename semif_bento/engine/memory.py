"""The device's memory: its cap, its figures, and the guard around every call.

Knows nothing of prompts or models. `set_per_process_memory_fraction` caps torch's caching
allocator only: the CUDA context and libraries' own workspaces lie outside it.
"""

import gc
import logging
import os
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch

from semif_bento.engine.prefix import PrefixCache
from semif_bento.errors import (
    InvalidRequest,
    OutOfMemory,
    RequestError,
    ScoringFailed,
    StartupError,
)

logger = logging.getLogger(__name__)

T = TypeVar("T")

GIB, MIB = 2**30, 2**20
BURST_SLACK_BYTES = 512 * MIB
# CUDA; torch's host allocator; cuBLAS and cuDNN status names; C++ standard library.
OUT_OF_MEMORY_SIGNS = ("out of memory", "can't allocate memory", "alloc_failed", "bad_alloc")


class DeviceMemory(Protocol):
    """What the guard asks of a device."""

    def allocated_bytes(self) -> int:
        """Return the bytes that live tensors hold, where the device can tell; else 0."""
        ...

    def reserved_bytes(self) -> int:
        """Return the bytes kept from other tenants, live or idle; on a CPU the resident set."""
        ...

    def release(self) -> None:
        """Hand idle bytes back to the device."""
        ...


class CpuMemory:
    """Host memory: freed tensors go back by themselves, so there is nothing to release."""

    def allocated_bytes(self) -> int:
        """Return the resident set; torch keeps no count of host tensors."""
        return self.reserved_bytes()

    def reserved_bytes(self) -> int:
        """Return the resident set of this process in bytes."""
        with open("/proc/self/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def release(self) -> None:
        """Do nothing: the host's allocator has no cache of its own here."""


class CudaMemory:
    """The current CUDA device's caching allocator."""

    def allocated_bytes(self) -> int:
        """Return the bytes of live tensors."""
        return torch.cuda.memory_allocated()

    def reserved_bytes(self) -> int:
        """Return the bytes the caching allocator holds."""
        return torch.cuda.memory_reserved()

    def release(self) -> None:
        """Return the allocator's idle blocks to the driver."""
        torch.cuda.empty_cache()


def cap_process(vram_cap_gib: float) -> None:
    """Cap this process's share of the card; call it before any weight is loaded.

    Raises:
        StartupError: the cap is larger than the card.
    """
    total = torch.cuda.get_device_properties(0).total_memory
    fraction = vram_cap_gib * GIB / total
    if fraction > 1:
        raise StartupError(
            f"SEMIF_VRAM_CAP_GIB={vram_cap_gib:g} is more than the card's {total / GIB:.1f} GiB."
        )
    torch.cuda.set_per_process_memory_fraction(fraction, 0)


@dataclass(frozen=True, slots=True)
class _Failure:
    """What a failed call leaves behind: words only, never the exception that holds its frames."""

    error: type[RequestError]
    message: str


class MemoryGuard:
    """Runs calls so that a failed one leaves nothing on the device and a big one no burst.

    A failure is raised anew, unchained and outside the `except` block: an exception keeps its
    traceback, the traceback its frames, and the frames the tensors of the failed call.
    """

    def __init__(self, memory: DeviceMemory, prefix_cache: PrefixCache) -> None:
        self._memory = memory
        self._prefix_cache = prefix_cache
        self._baseline_bytes: int | None = None

    def fix_baseline(self) -> None:
        """Take the memory reserved now as this process's resting footprint."""
        self._baseline_bytes = self._memory.reserved_bytes()

    def run(self, call: Callable[[], T]) -> T:
        """Return what `call` returns.

        Out of memory empties the prefix cache and tries once more, if the cache held anything.

        Raises:
            RequestError: what the call raised, anew; OutOfMemory for every kind of memory
                exhaustion, ScoringFailed for every other exception.
        """
        result = self._attempt(call)
        if _ran_out(result) and self._prefix_cache.clear():
            self._release_all()
            result = self._attempt(call)
        if not isinstance(result, _Failure):
            self._release_burst()
            return result
        if issubclass(result.error, InvalidRequest):
            self._release_burst()  # refused before the device: no tensor to collect
        else:
            self._release_all()
        raise result.error(result.message)

    def _attempt(self, call: Callable[[], T]) -> T | _Failure:
        try:
            return call()
        except RequestError as exc:
            return _Failure(type(exc), exc.message)
        except Exception as exc:  # noqa: BLE001  every failure must let go of its tensors here
            if is_out_of_memory(exc):
                return _Failure(OutOfMemory, "The device ran out of memory for this request.")
            _log_frames(exc)
            return _Failure(ScoringFailed, "Scoring failed; the server's log says where.")

    def _release_all(self) -> None:
        gc.collect()
        self._memory.release()

    def _release_burst(self) -> None:
        if self._baseline_bytes is None:
            return
        allowed = self._baseline_bytes + self._prefix_cache.status().bytes + BURST_SLACK_BYTES
        if self._memory.reserved_bytes() > allowed:
            self._memory.release()


def _ran_out(result: object) -> bool:
    return isinstance(result, _Failure) and result.error is OutOfMemory


def is_out_of_memory(exc: BaseException) -> bool:
    """Tell memory exhaustion apart: torch's own error, and libraries that only say so in words.

    Words count in a RuntimeError alone, which is what torch makes of a library's error: another
    exception may quote the request.
    """
    if isinstance(exc, torch.OutOfMemoryError | MemoryError):
        return True
    words = str(exc).lower() if isinstance(exc, RuntimeError) else ""
    return any(sign in words for sign in OUT_OF_MEMORY_SIGNS)


def _log_frames(exc: BaseException) -> None:
    # Types and places only: an exception's message may quote the request's text.
    frames = "".join(traceback.format_list(traceback.extract_tb(exc.__traceback__)))
    logger.error("scoring failed with %s at\n%s", type(exc).__name__, frames)
