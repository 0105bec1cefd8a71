"""The list of models as both SDKs read it; knows nothing of HTTP or of how a model answers."""

from datetime import UTC, datetime, time
from typing import Literal

from semif_bento.api.catalogue import Catalogue
from semif_bento.api.schema import Wire

OWNER = "semif-bento"


class ModelMetadata(Wire):
    """A model that a request may name."""

    name: str
    description: str
    release_date: str


class ModelEntry(Wire):
    """The same model for OpenAI's SDK; `created` is in seconds since 1970."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str


class ModelList(Wire):
    """Answer of GET /v1/models: every name once for each SDK, in one order."""

    object: Literal["list"] = "list"
    data: list[ModelEntry]
    models: list[ModelMetadata]


def to_model_list(catalogue: Catalogue) -> ModelList:
    """Return the answer of GET /v1/models: every model under every name, its own first."""
    return ModelList(
        data=[_entry(catalogue, name) for model in catalogue.models for name in model.names],
        models=[
            ModelMetadata(
                name=name, description=model.description, release_date=catalogue.since.isoformat()
            )
            for model in catalogue.models
            for name in model.names
        ],
    )


def to_model_entry(catalogue: Catalogue, name: str) -> ModelEntry:
    """Return the answer of GET /v1/models/{model}: the model under the name that was asked for.

    Raises:
        UnknownModel: nothing goes by it.
    """
    catalogue.find(name)
    return _entry(catalogue, name)


def _entry(catalogue: Catalogue, name: str) -> ModelEntry:
    since = datetime.combine(catalogue.since, time(), UTC)
    return ModelEntry(id=name, created=int(since.timestamp()), owned_by=OWNER)
