"""What a protocol asks of whoever answers its questions; knows nothing of engines or HTTP."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from semif_bento.decisions import JsonState, Scores
from semif_bento.errors import UsageError
from semif_bento.questions import Question

WORKLOAD, DIAGNOSTICS = "x-semif-workload", "x-semif-diagnostics"
"""Headers that ask for more: the bodies are other services' own and take no keys of ours."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a request asks for beside its answers."""

    workload: str | None = None
    diagnostics: bool = False

    @classmethod
    def of(cls, headers: Mapping[str, str]) -> "Wishes":
        """Read the headers; whether the workload is known is for the asker to say.

        Raises:
            UsageError: diagnostics that are neither true nor false.
        """
        diagnostics = headers.get(DIAGNOSTICS, "false")
        if diagnostics not in ("true", "false"):
            raise UsageError(f"{DIAGNOSTICS} must be true or false.")
        return cls(headers.get(WORKLOAD), diagnostics == "true")


@dataclass(frozen=True, slots=True)
class Found:
    """What an engine found out about a question.

    `probabilities` are in the order of the options, each in 0..1, their sum 1. `scores` are the
    engine's native numbers, None where there was one option only; `evidence` is what else it tells.
    """

    probabilities: tuple[float, ...]
    scores: Scores | None
    evidence: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """The answers by question id, what gave them, and the tokens that were read.

    `input_tokens` count a shared state once; `cached_tokens` of them were known already.
    """

    model: str
    answers: Mapping[str, Found]
    input_tokens: int
    cached_tokens: int


class Asker(Protocol):
    """Asks the engine that a request names."""

    async def ask(
        self,
        model_name: str,
        state: JsonState,
        questions: Sequence[Question],
        wishes: Wishes,
        arrived_s: float,
    ) -> Asked:
        """Answer questions about a state.

        Raises:
            UnknownModel: nothing that is served goes by the name.
            RequestError: a question that cannot be asked, an unknown workload, or as the scheduler
                and the scorer raise it.
        """
        ...
