"""Make the configured device ready, or refuse it; knows nothing of models."""

import os

import torch

from semif_bento.engine.memory import cap_process
from semif_bento.errors import StartupError
from semif_bento.settings import Settings


def prepare_device(settings: Settings) -> None:
    """Forbid the network, check the device and cap this process's share of it.

    Raises:
        StartupError: the device cannot be used, or the cap is larger than it.
    """
    os.environ["HF_HUB_OFFLINE"] = "1"
    check_device(settings)
    if settings.vram_cap_gib is not None:
        cap_process(settings.vram_cap_gib)


def check_device(settings: Settings) -> None:
    """Refuse a device that torch cannot use or has no kernels for.

    Raises:
        StartupError: CUDA is asked for and missing, or torch lacks kernels for the card.
    """
    if settings.device == "cpu":
        return
    if not torch.cuda.is_available():
        raise StartupError("SEMIF_DEVICE=cuda, but torch sees no CUDA device.")
    major, minor = torch.cuda.get_device_capability(0)
    known = torch.cuda.get_arch_list()
    # A kernel runs on cards of its own major version, from its own minor version on: sm_86 on 8.9.
    if not any(f"sm_{major}{older}" in known for older in range(minor + 1)):
        raise StartupError(
            f"torch {torch.__version__} has no kernels for sm_{major}{minor}; it has "
            f"{', '.join(known)}."
        )


def device_name(settings: Settings) -> str:
    """Return what the device calls itself."""
    return torch.cuda.get_device_name(0) if settings.device == "cuda" else "cpu"
