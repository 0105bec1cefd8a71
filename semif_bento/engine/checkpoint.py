"""Refuse a checkpoint that did not load whole; knows nothing of files or of what loaded it."""

from collections.abc import Iterable

from semif_bento.errors import StartupError

# Parts of a multimodal Qwen3.5 checkpoint that its text model rightly leaves out.
UNUSED_PARTS = ("model.visual.", "visual.", "mtp.", "model.mtp.")


def refuse_partial(info: dict[str, Iterable[object]]) -> None:
    """Check what transformers reports of a load (its `output_loading_info`).

    Raises:
        StartupError: weights are missing (transformers makes up random ones), of another shape,
            or unknown to the architecture; the message counts them and names the first.
    """
    unexpected = [k for k in _names(info, "unexpected_keys") if not k.startswith(UNUSED_PARTS)]
    faults = {
        "missing": _names(info, "missing_keys"),
        "mismatched": _names(info, "mismatched_keys"),
        "unreadable": _names(info, "error_msgs"),
        "unexpected": unexpected,
    }
    found = [f"{len(names)} {fault} ({names[0]})" for fault, names in faults.items() if names]
    if found:
        raise StartupError(f"The checkpoint did not load whole: {'; '.join(found)}.")


def _names(info: dict[str, Iterable[object]], key: str) -> list[str]:
    return sorted(str(name) for name in info.get(key) or ())
