"""Corrects BentoML's OpenAPI document to what the server really takes and answers.

Knows nothing of requests; it works on the document alone.
"""

from dataclasses import dataclass
from typing import Any

import yaml

from semif_bento import __version__, errors
from semif_bento.api.results import DecisionResult, Health, SharedResponse
from semif_bento.api.routes import ROUTES
from semif_bento.api.schema import Wire

Document = dict[str, Any]

JSON = "application/json"
_ABOUT = "Typed decisions over text by one forward pass: softmax over the options' letter logits."
_REFERENCE = "#/components/schemas/{model}"
_ANSWERS: dict[str, type[Wire]] = {
    "/health": Health,
    "/decide": DecisionResult,
    "/decide/shared": SharedResponse,
}
_ERRORS = (
    errors.Unauthorized,
    errors.RequestTooLarge,
    errors.UnsupportedMedia,
    errors.InvalidRequest,
    errors.Overloaded,
    errors.ScoringFailed,
    errors.OutOfMemory,
    errors.ScoringTimeout,
)
_ERROR_SCHEMA: Document = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
        }
    },
}


@dataclass(frozen=True, slots=True)
class Corrected:
    """What BentoML asks of a specification: something with `asdict`."""

    document: Document

    def asdict(self) -> Document:
        """Return the corrected document; BentoML's tags and operation ids stay."""
        schemas: Document = {"Error": _ERROR_SCHEMA}
        paths = {path: self._path(path, schemas) for path in ROUTES}
        components = {
            "schemas": schemas,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        }
        # 3.1, since pydantic writes JSON Schema 2020-12.
        return {
            **self.document,
            "openapi": "3.1.0",
            "info": {"title": "semif-bento", "version": __version__, "description": _ABOUT},
            "paths": paths,
            "components": components,
            "security": [{"bearer": []}],
        }

    def _path(self, path: str, schemas: Document) -> Document:
        route = ROUTES[path]
        theirs = self.document["paths"].get(path, {})
        operations: Document = {}
        for method in (name.lower() for name in route.methods if name != "HEAD"):
            operation = dict(theirs.get(method, {}))
            operation["responses"] = _responses(path, schemas)
            operation.pop("requestBody", None)
            if method == "post" and route.body:
                schema = _refer(route.body, schemas)
                required = bool(route.body.model_fields)
                operation["requestBody"] = {"required": required, "content": {JSON: schema}}
            if route.is_open:
                operation["security"] = []
            operations[method] = operation
        return operations


# `bentoml build` writes the document with PyYAML, which would dump the object, not the document.
yaml.add_representer(Corrected, lambda dumper, spec: dumper.represent_dict(spec.asdict()))


def _responses(path: str, schemas: Document) -> Document:
    answer = _ANSWERS.get(path)
    ok: Document = {"description": "ok"}
    if answer:
        ok["content"] = {JSON: _refer(answer, schemas)}
    error = {JSON: {"schema": {"$ref": _REFERENCE.format(model="Error")}}}
    refusals = _ERRORS if ROUTES[path].body else _ERRORS[:1]
    if ROUTES[path].is_open:
        refusals = [kind for kind in refusals if kind is not errors.Unauthorized]
    described = {
        str(kind.status): {"description": kind.code, "content": error} for kind in refusals
    }
    return {"200": ok, **described}


def _refer(model: type[Any], schemas: Document) -> Document:
    """Return a reference to `model`, its schema and those it needs added to `schemas`."""
    schema = model.model_json_schema(ref_template=_REFERENCE, mode="validation")
    schemas.update(schema.pop("$defs", {}))
    schemas[model.__name__] = schema
    return {"schema": {"$ref": _REFERENCE.format(model=model.__name__)}}
