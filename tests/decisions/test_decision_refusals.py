"""Every error of the product in OpenAI's body, and whose errors a path has."""

import pytest

from semif_bento import errors
from semif_bento.api.decisions.refusal import render
from semif_bento.api.routes import MODEL, family_of, find

CALLER, SERVER = "invalid_request_error", "server_error"


@pytest.mark.parametrize(
    ("error", "status", "kind", "param", "code"),
    [
        (errors.UsageError("No."), 400, CALLER, None, "invalid_value"),
        (errors.Unauthorized("No."), 401, CALLER, None, "invalid_api_key"),
        (errors.TokenMissing("No."), 401, CALLER, None, "invalid_api_key"),
        (errors.NotFound("No."), 404, CALLER, None, "not_found"),
        (errors.MethodNotAllowed("No."), 405, CALLER, None, "method_not_allowed"),
        (errors.RequestTooLarge("No."), 413, CALLER, None, "request_too_large"),
        (errors.UnsupportedMedia("No."), 415, CALLER, None, "unsupported_media_type"),
        (errors.InvalidRequest("No."), 400, CALLER, None, "invalid_request"),
        (errors.MalformedJson("No.", reason="r", position=1), 400, CALLER, None, "invalid_request"),
        (
            errors.InvalidParameter("No.", param="input[0]", kind="invalid_type"),
            400,
            CALLER,
            "input[0]",
            "invalid_type",
        ),
        (errors.PromptTooLong("No."), 400, CALLER, "input", "context_length_exceeded"),
        (errors.Overloaded("No."), 429, "rate_limit_error", None, "overloaded"),
        (errors.ScoringFailed("No."), 500, SERVER, None, "scoring_failed"),
        (errors.EngineFault("No.", kind="gone"), 500, SERVER, None, "scoring_failed"),
        (errors.OutOfMemory("No."), 503, SERVER, None, "out_of_memory"),
        (errors.ScoringTimeout("No."), 504, SERVER, None, "timeout"),
    ],
)
def test_every_error_has_openais_body(error, status, kind, param, code):
    body = {"error": {"message": "No.", "type": kind, "param": param, "code": code}}
    assert render(error) == (status, body)


def test_an_unknown_model_is_not_repeated():
    status, body = render(errors.UnknownModel("Unknown model: secret"))
    assert status == 404
    assert body["error"]["code"] == "model_not_found"
    assert body["error"]["param"] == "model"
    assert "secret" not in str(body)


@pytest.mark.parametrize(
    ("path", "route", "family"),
    [
        ("/decide", ("/decide", ""), "native"),
        ("/v1/systemone", ("/v1/systemone", ""), "systemone"),
        ("/v1/models", ("/v1/models", ""), "systemone"),
        ("/v1/nope", None, "systemone"),
        ("/v1/decisions", ("/v1/decisions", ""), "decisions"),
        ("/v1/decisions/x", None, "decisions"),
        ("/v1/decisionsx", None, "systemone"),
        ("/v1/models/", None, "decisions"),
        ("/v1/models/Qwen/Qwen3.5-4B@851b", (MODEL, "Qwen/Qwen3.5-4B@851b"), "decisions"),
        (MODEL, (MODEL, "{model}"), "decisions"),
        ("/nope", None, "native"),
    ],
)
def test_a_path_has_a_route_of_the_table_and_the_errors_of_its_clients(path, route, family):
    assert find(path) == route
    assert family_of(path) == family
