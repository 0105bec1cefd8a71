"""Corrects BentoML's OpenAPI document to what the server really takes and answers.

Knows nothing of requests; it works on the document alone.
"""

from dataclasses import dataclass
from typing import Any

import yaml

from semif_bento import __version__, errors
from semif_bento.api.refusal import render
from semif_bento.api.routes import ROUTES, is_systemone
from semif_bento.api.typed import DIAGNOSTICS, WORKLOAD

Document = dict[str, Any]

JSON = "application/json"
_ABOUT = "Typed decisions over text by one forward pass: softmax over the options' letter logits."
_REFERENCE = "#/components/schemas/{model}"
_ERRORS: tuple[type[errors.RequestError], ...] = (
    errors.UsageError,
    errors.Unauthorized,
    errors.TokenMissing,
    errors.NotFound,
    errors.RequestTooLarge,
    errors.UnsupportedMedia,
    errors.InvalidRequest,
    errors.Overloaded,
    errors.ScoringFailed,
    errors.OutOfMemory,
    errors.ScoringTimeout,
)
_OF_TOKENS = (errors.Unauthorized, errors.TokenMissing)
_OF_SYSTEMONE = (errors.UsageError,)
_OF_ENGINES = (errors.NotFound,)
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
_SYSTEMONE_ERROR_SCHEMA: Document = {
    "type": "object",
    "required": ["detail"],
    "properties": {
        "detail": {
            "oneOf": [
                {"type": "string"},
                {
                    "type": "object",
                    "required": ["error_type", "message"],
                    "properties": {"error_type": {"type": "string"}, "message": {"type": "string"}},
                },
                {
                    "type": "array",
                    "minItems": 1,
                    "items": {"type": "object", "required": ["type", "loc", "msg", "input"]},
                },
            ]
        }
    },
}
_PARAMETERS: dict[str, list[Document]] = {
    "/v1/systemone": [
        {"name": WORKLOAD, "in": "header", "schema": {"type": "string", "minLength": 1}},
        {"name": DIAGNOSTICS, "in": "header", "schema": {"enum": ["true", "false"]}},
    ]
}


@dataclass(frozen=True, slots=True)
class Corrected:
    """What BentoML asks of a specification: something with `asdict`."""

    document: Document

    def asdict(self) -> Document:
        """Return the corrected document; BentoML's tags and operation ids stay."""
        schemas: Document = {"Error": _ERROR_SCHEMA, "SystemOneError": _SYSTEMONE_ERROR_SCHEMA}
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
            operation = {**theirs.get(method, {}), "summary": route.summary}
            operation["responses"] = _responses(path, schemas)
            operation.pop("requestBody", None)
            if path in _PARAMETERS:
                operation["parameters"] = _PARAMETERS[path]
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
    route = ROUTES[path]
    ok: Document = {"description": "ok"}
    if route.answer:
        ok["content"] = {JSON: _refer(route.answer, schemas)}
    return {"200": ok, **_refusals(path)}


def _refusals(path: str) -> Document:
    route, as_systemone = ROUTES[path], is_systemone(path)
    name = "SystemOneError" if as_systemone else "Error"
    content = {JSON: {"schema": {"$ref": _REFERENCE.format(model=name)}}}
    kinds = [
        kind
        for kind in _ERRORS
        if (route.body or kind in _OF_TOKENS)
        and not (route.is_open and kind in _OF_TOKENS)
        and (as_systemone or kind not in _OF_SYSTEMONE)
        and (route.needs_engine or kind not in _OF_ENGINES)
    ]
    statuses = {render(kind(""), as_systemone=as_systemone)[0]: kind.code for kind in kinds}
    return {
        str(status): {"description": code, "content": content}
        for status, code in sorted(statuses.items())
    }


def _refer(model: type[Any], schemas: Document) -> Document:
    """Return a reference to `model`, its schema and those it needs added to `schemas`."""
    schema = model.model_json_schema(ref_template=_REFERENCE, mode="validation")
    schemas.update(schema.pop("$defs", {}))
    schemas[model.__name__] = schema
    return {"schema": {"$ref": _REFERENCE.format(model=model.__name__)}}
