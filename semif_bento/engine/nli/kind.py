"""The NLI engine as the rooms around it know it; knows nothing of torch."""

from semif_bento.calibration import Binding
from semif_bento.decisions import Decision, Option
from semif_bento.engine.kind import EngineKind
from semif_bento.entailment import HYPOTHESIS_VERSION
from semif_bento.questions import Question


def word(question: Question) -> Decision:
    """Return a question as an NLI model is asked: labels, and what each means.

    An option that nothing is said of is described by its label.
    """
    options = (Option(one.id, one.description or one.label, one.label) for one in question.options)
    return Decision(question.id, question.instructions, tuple(options), question.kind)


NLI = EngineKind(
    name="nli",
    binding=Binding("nli", "SEMIF_NLI_CALIBRATION", HYPOTHESIS_VERSION),
    absent="The NLI engine is not loaded here; SEMIF_NLI_MODEL enables it.",
    is_wanted=lambda settings: settings.nli_model is not None,
    calibration_file=lambda settings: settings.nli_calibration,
    pinned_model=lambda settings: (
        (settings.nli_name, settings.nli_revision) if settings.nli_revision else None
    ),
    word=word,
    describe=lambda most: f"entailment of each option, in any order, up to {most} choices",
    torch_module="semif_bento.engine.nli.opening",
    remote_module="semif_bento.remote.nli",
)
