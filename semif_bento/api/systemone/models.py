"""The one list of names that a request may call a model by; knows nothing of requests.

Another engine joins the list as another entry. Whatever name a request uses, the answer names the
checkpoint that gave it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from semif_bento.api.systemone.results import ModelList, ModelMetadata
from semif_bento.decisions import ModelIdentity
from semif_bento.errors import UsageError


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model that answers: its honest name, what else it goes by, and what it can do."""

    name: str
    aliases: tuple[str, ...]
    description: str
    max_choices: int


class Catalogue:
    """What is served, from one day on.

    Args:
        models: all that is loaded; their names and aliases differ.
        since: the day they were loaded. A checkpoint does not tell its own release date, and
            clients require one.
    """

    def __init__(self, models: Sequence[ServedModel], since: date) -> None:
        self._models = tuple(models)
        self._since = since

    def find(self, name: str) -> ServedModel:
        """Return the model that goes by a name.

        Raises:
            UsageError: none does.
        """
        for model in self._models:
            if name == model.name or name in model.aliases:
                return model
        raise UsageError(f"Unknown model: {name}")

    def as_list(self) -> ModelList:
        """Return the answer of GET /v1/models: every model under every name, its own first."""
        return ModelList(
            models=[
                ModelMetadata(
                    name=name,
                    description=model.description,
                    release_date=self._since.isoformat(),
                )
                for model in self._models
                for name in (model.name, *model.aliases)
            ]
        )


def letter_model(identity: ModelIdentity, max_choices: int, aliases: Sequence[str]) -> ServedModel:
    """Return the entry of the engine that reads option letters.

    It goes by its source with the revision, which is its honest name, by its source alone, and by
    the operator's aliases.
    """
    name = f"{identity.source}@{identity.revision}"
    return ServedModel(
        name=name,
        aliases=(identity.source, *aliases),
        description=(
            f"{name} in {identity.dtype}: option letters read by one forward pass, up to "
            f"{max_choices} choices"
        ),
        max_choices=max_choices,
    )
