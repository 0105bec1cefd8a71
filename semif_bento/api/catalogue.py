"""The one list of names that a request may call a model by; knows nothing of requests.

Another engine joins the list as another entry. Whatever name a request uses, the answer names the
checkpoint that gave it.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

from semif_bento.backend import Backend
from semif_bento.decisions import Engine
from semif_bento.engine.kind import model_name
from semif_bento.engine.registry import KINDS
from semif_bento.errors import StartupError, UnknownModel


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model that answers: its engine, its honest name and other names, and what it can do."""

    engine: str
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

    @classmethod
    def over(cls, backend: Backend, aliases: Sequence[str]) -> "Catalogue":
        """Return what a backend serves, from today on; aliases go to the first of its models.

        Raises:
            StartupError: as `served_models` raises it.
        """
        return cls(served_models(backend, aliases), datetime.now(UTC).date())

    def find(self, name: str) -> ServedModel:
        """Return the model that goes by a name.

        Raises:
            UnknownModel: none does; the message tells the names that there are.
        """
        for model in self._models:
            if name in model.names:
                return model
        known = ", ".join(name for model in self._models for name in model.names)
        raise UnknownModel(f"Unknown model; there is: {known}.")

    @property
    def models(self) -> tuple[ServedModel, ...]:
        """All that is served."""
        return self._models

    @property
    def since(self) -> date:
        """The day they were loaded."""
        return self._since


def served_models(backend: Backend, aliases: Sequence[str]) -> tuple[ServedModel, ...]:
    """Return an entry for each engine of a backend, the default one's first.

    A model goes by its source with the revision, which is its honest name, and by its source alone;
    the first of them by the operator's aliases too. Where several engines read one model, the
    default or the first of them has these names, and each other has them with `#` and its own.

    Raises:
        StartupError: two models would go by one name, so that one could not be asked.
    """
    first = backend.first
    others = [engine for engine in backend.engines.values() if engine is not first]
    models = [_served(first, aliases, "")]
    for engine in others:
        is_read_by_another = any(model.name == model_name(engine.identity) for model in models)
        models.append(_served(engine, (), f"#{engine.name}" if is_read_by_another else ""))
    for name, count in Counter(name for model in models for name in model.names).items():
        if count > 1:
            raise StartupError(
                f"Two models would go by the name {name!r}; see SEMIF_MODEL, SEMIF_NLI_MODEL and "
                "SEMIF_MODEL_ALIASES."
            )
    return tuple(models)


def _served(engine: Engine, aliases: Sequence[str], suffix: str) -> ServedModel:
    identity = engine.identity
    name = model_name(identity) + suffix
    how = KINDS[engine.name].describe(engine.most_options)
    return ServedModel(
        engine=engine.name,
        name=name,
        aliases=(identity.source + suffix, *aliases),
        description=f"{name} in {identity.dtype}: {how}",
        max_choices=engine.most_options,
    )
