"""The echo engine as the rooms around it know it."""

from semif_bento.calibration import Binding
from semif_bento.decisions import Decision, Option
from semif_bento.engine.kind import EngineKind
from semif_bento.questions import Question


def word(question: Question) -> Decision:
    options = tuple(Option(one.id, one.description, one.label) for one in question.options)
    return Decision(question.id, question.instructions, options, question.kind)


ECHO = EngineKind(
    name="echo",
    binding=Binding("echo", "SEMIF_ECHO_CALIBRATION", "echo-v1"),
    absent="The echo engine is not loaded here.",
    is_wanted=lambda settings: True,
    calibration_file=lambda settings: None,
    pinned_model=lambda settings: None,
    word=word,
    describe=lambda most: f"how often an option's name is in the state, up to {most} choices",
    torch_module="models.echo.opening",
    remote_module=None,
)
