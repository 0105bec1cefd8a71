"""The letter engine as the rooms around it know it; knows nothing of torch."""

from semif_bento import calibration
from semif_bento.engine.kind import EngineKind
from semif_bento.engine.letters.wording import word

LETTERS = EngineKind(
    name="letters",
    binding=calibration.LETTERS,
    absent="The letter engine is not loaded here; set SEMIF_MODEL, or ask with engine nli.",
    is_wanted=lambda settings: settings.has_causal_model,
    calibration_file=lambda settings: settings.calibration,
    pinned_model=lambda settings: (
        (settings.model, settings.revision) if settings.revision else None
    ),
    word=word,
    describe=lambda most: f"option letters read by one forward pass, up to {most} choices",
    torch_module="semif_bento.engine.letters.opening",
    remote_module="semif_bento.remote.letters",
    reads_order=True,
)
