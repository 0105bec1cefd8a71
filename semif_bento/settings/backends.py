"""Which settings of a backend go together; knows nothing of what a backend is."""

from collections.abc import Mapping
from typing import Any

from semif_bento.errors import StartupError

HERE = "torch"


def refuse_mixed_backends(found: Mapping[str, Any], no_model: str) -> None:
    """Refuse what a backend needs and has not, or has and cannot use.

    Args:
        found: the settings that are given, by field; what is missing has its default.
        no_model: the name of a model that says there is none.

    Raises:
        StartupError: the first that does not fit, by name.
    """
    backend = found.get("backend", HERE)
    if backend == HERE:
        for name in sorted(found):
            if name.startswith("backend_"):
                raise StartupError(
                    f"SEMIF_{name.upper()} needs SEMIF_BACKEND=vllm or SEMIF_BACKEND=sglang."
                )
        return
    for is_wanted, urls, engine in (
        (found.get("model") != no_model, "backend_urls", "SEMIF_MODEL"),
        ("nli_model" in found, "backend_nli_urls", "SEMIF_NLI_MODEL"),
    ):
        if is_wanted and urls not in found:
            raise StartupError(f"SEMIF_BACKEND={backend} needs SEMIF_{urls.upper()} for {engine}.")
        if urls in found and not is_wanted:
            raise StartupError(f"SEMIF_{urls.upper()} needs {engine}.")
    if "vram_cap_gib" in found:
        raise StartupError(
            "SEMIF_VRAM_CAP_GIB caps this process, which needs no card with "
            f"SEMIF_BACKEND={backend}; cap the servers themselves."
        )
