"""The likelihood engine as the rooms around it know it; knows nothing of torch."""

from semif_bento.calibration import Binding
from semif_bento.engine.kind import EngineKind
from semif_bento.engine.likelihood.wording import LIKELIHOOD_VERSION, word

LIKELIHOOD = EngineKind(
    name="likelihood",
    binding=Binding("likelihood", "SEMIF_LIKELIHOOD_CALIBRATION", LIKELIHOOD_VERSION),
    absent="The likelihood engine is not loaded here; set SEMIF_MODEL, computed in this process.",
    # No dialect of engine servers has been proven to give the log-probabilities of a prompt.
    is_wanted=lambda settings: (
        settings.has_causal_model and (not settings.is_remote or settings.engine == "likelihood")
    ),
    calibration_file=lambda settings: settings.likelihood_calibration,
    pinned_model=lambda settings: (
        (settings.model, settings.revision) if settings.revision else None
    ),
    word=word,
    describe=lambda most: f"likelihood of each option's text, in any order, up to {most} choices",
    torch_module="semif_bento.engine.likelihood.opening",
    remote_module=None,
)
