"""Corrects BentoML's OpenAPI document to what the server really takes and answers.

Knows nothing of requests; it works on the document alone.
"""

from dataclasses import dataclass
from typing import Any

import yaml

from semif_bento import __version__, errors
from semif_bento.api.exchange import Family
from semif_bento.api.refusal import render
from semif_bento.api.routes import MODEL, ROUTES, family_of
from semif_bento.api.typed import DIAGNOSTICS, WORKLOAD

Document = dict[str, Any]

JSON = "application/json"
_ABOUT = "Typed decisions over text by one forward pass: softmax over the options' letter logits."
_REFERENCE = "#/components/schemas/{model}"
_ERRORS: tuple[type[errors.RequestError], ...] = (
    errors.UsageError,
    errors.UnknownModel,
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
_OF_V1 = (errors.UsageError, errors.UnknownModel)
_OF_NAMES = (errors.UnknownModel,)
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
_DECISIONS_ERROR_SCHEMA: Document = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "param", "code"],
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "param": {"type": ["string", "null"]},
                "code": {"type": "string"},
            },
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
_ERROR_NAMES: dict[Family, str] = {
    "native": "Error",
    "systemone": "SystemOneError",
    "decisions": "OpenAIError",
}
_WISHES: list[Document] = [
    {"name": WORKLOAD, "in": "header", "schema": {"type": "string", "minLength": 1}},
    {"name": DIAGNOSTICS, "in": "header", "schema": {"enum": ["true", "false"]}},
]
_PARAMETERS: dict[str, list[Document]] = {
    "/v1/systemone": _WISHES,
    "/v1/decisions": _WISHES,
    MODEL: [
        {
            "name": "model",
            "in": "path",
            "required": True,
            "schema": {"type": "string", "minLength": 1},
        }
    ],
}


@dataclass(frozen=True, slots=True)
class Corrected:
    """What BentoML asks of a specification: something with `asdict`."""

    document: Document

    def asdict(self) -> Document:
        """Return the corrected document; BentoML's tags and operation ids stay."""
        schemas: Document = {
            "Error": _ERROR_SCHEMA,
            "SystemOneError": _SYSTEMONE_ERROR_SCHEMA,
            "OpenAIError": _DECISIONS_ERROR_SCHEMA,
        }
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
                schema = _refer(route.body, schemas, path)
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
        ok["content"] = {JSON: _refer(route.answer, schemas, path)}
    return {"200": ok, **_refusals(path)}


def _refusals(path: str) -> Document:
    route, family = ROUTES[path], family_of(path)
    content = {JSON: {"schema": {"$ref": _REFERENCE.format(model=_ERROR_NAMES[family])}}}
    kinds = [
        kind
        for kind in _ERRORS
        if (route.body or kind in _OF_TOKENS or (path == MODEL and kind in _OF_NAMES))
        and not (route.is_open and kind in _OF_TOKENS)
        and (family != "native" or kind not in _OF_V1)
        and (route.needs_engine or kind not in _OF_ENGINES)
    ]
    statuses = {}
    for kind in kinds:
        status, body = render(kind(""), family)
        statuses[status] = body["error"]["code"] if family == "decisions" else kind.code
    return {
        str(status): {"description": code, "content": content}
        for status, code in sorted(statuses.items())
    }


def _refer(model: type[Any], schemas: Document, path: str) -> Document:
    """Return a reference to `model`, its schema and those it needs added to `schemas`.

    Two protocols have models of one name, so OpenAI's have it before theirs.
    """
    prefix = "OpenAI" if family_of(path) == "decisions" else ""
    template = _REFERENCE.format(model=prefix + "{model}")
    schema = model.model_json_schema(ref_template=template, mode="validation")
    schemas.update({prefix + name: part for name, part in schema.pop("$defs", {}).items()})
    schemas[prefix + model.__name__] = schema
    return {"schema": {"$ref": template.format(model=model.__name__)}}
