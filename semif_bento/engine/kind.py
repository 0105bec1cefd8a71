"""The shape that every kind of engine has; knows nothing of any one of them, nor of torch."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from semif_bento.calibration import Binding
from semif_bento.decisions import Decision, ModelIdentity
from semif_bento.questions import Question
from semif_bento.settings import Settings


@dataclass(frozen=True, slots=True)
class EngineKind:
    """All that the rooms around an engine need to know before it is loaded.

    `absent` is the sentence that a caller reads where the engine is not loaded. `describe` tells
    in a few words how it decides, given the most choices that a question may have. `torch_module`
    and `remote_module` are imported when an engine is opened; each has `open_engine`, and the
    first `load_weights` (see `engine.opening`); None where servers cannot stand in for torch.
    `reads_order` is whether the place of an option among the others is part of what is read.
    """

    name: str
    binding: Binding
    absent: str
    is_wanted: Callable[[Settings], bool]
    calibration_file: Callable[[Settings], Path | None]
    pinned_model: Callable[[Settings], tuple[str, str] | None]
    word: Callable[[Question], Decision]
    describe: Callable[[int], str]
    torch_module: str
    remote_module: str | None
    reads_order: bool = False


def model_name(identity: ModelIdentity) -> str:
    """Return the honest name of a model: its source and revision."""
    return f"{identity.source}@{identity.revision}"
