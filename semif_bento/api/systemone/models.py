"""The one list of names that a request may call a model by; knows nothing of requests.

Another engine joins the list as another entry. Whatever name a request uses, the answer names the
checkpoint that gave it.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Literal

from semif_bento.api.systemone.results import ModelEntry, ModelList, ModelMetadata
from semif_bento.api.systemone.schema import MAX_CHOICES
from semif_bento.backend import Backend
from semif_bento.decisions import ModelIdentity
from semif_bento.errors import StartupError, UnknownModel

OWNER = "semif-bento"


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model that answers: its engine, its honest name and other names, and what it can do."""

    engine: Literal["letter", "nli"]
    name: str
    aliases: tuple[str, ...]
    description: str
    max_choices: int

    @property
    def names(self) -> tuple[str, ...]:
        """Return every name once, its own first."""
        return tuple(dict.fromkeys((self.name, *self.aliases)))


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
            UnknownModel: none does.
        """
        for model in self._models:
            if name in model.names:
                return model
        raise UnknownModel(f"Unknown model: {name}")

    def as_list(self) -> ModelList:
        """Return the answer of GET /v1/models: every model under every name, its own first."""
        return ModelList(
            data=[self._entry(name) for model in self._models for name in model.names],
            models=[
                ModelMetadata(
                    name=name,
                    description=model.description,
                    release_date=self._since.isoformat(),
                )
                for model in self._models
                for name in model.names
            ],
        )

    def entry(self, name: str) -> ModelEntry:
        """Return the answer of GET /v1/models/{model}: the model under the name that was asked for.

        Raises:
            UnknownModel: nothing goes by it.
        """
        self.find(name)
        return self._entry(name)

    def _entry(self, name: str) -> ModelEntry:
        since = datetime.combine(self._since, time(), UTC)
        return ModelEntry(id=name, created=int(since.timestamp()), owned_by=OWNER)


def served_models(backend: Backend, aliases: Sequence[str]) -> tuple[ServedModel, ...]:
    """Return an entry for each engine of a backend, the letter engine's first.

    A model goes by its source with the revision, which is its honest name, and by its source alone;
    the first of them by the operator's aliases too.

    Raises:
        StartupError: two models would go by one name, so that one could not be asked.
    """
    models = []
    if backend.letter:
        choices = backend.letter.wide_slot_count
        how = f"option letters read by one forward pass, up to {choices} choices"
        models.append(_served("letter", backend.letter.identity, how, choices, aliases))
        aliases = ()
    if backend.nli:
        how = f"entailment of each option, in any order, up to {MAX_CHOICES} choices"
        models.append(_served("nli", backend.nli.identity, how, MAX_CHOICES, aliases))
    for name, count in Counter(name for model in models for name in model.names).items():
        if count > 1:
            raise StartupError(
                f"Two models would go by the name {name!r}; see SEMIF_MODEL, SEMIF_NLI_MODEL and "
                "SEMIF_MODEL_ALIASES."
            )
    return tuple(models)


def _served(
    engine: Literal["letter", "nli"],
    identity: ModelIdentity,
    how: str,
    max_choices: int,
    aliases: Sequence[str],
) -> ServedModel:
    name = f"{identity.source}@{identity.revision}"
    return ServedModel(
        engine=engine,
        name=name,
        aliases=(identity.source, *aliases),
        description=f"{name} in {identity.dtype}: {how}",
        max_choices=max_choices,
    )
