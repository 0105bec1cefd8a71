"""The one error tree of the product; knows nothing of HTTP libraries, torch or BentoML.

    SemifError
    ├── StartupError            the service must not start; one line, exit code 1
    │   └── EngineUnfit         a model cannot carry an engine; others may start without it
    ├── EvidenceError           calibrate or accept cannot go on; what was scored is kept
    └── RequestError            one request fails; the process goes on
        ├── UsageError          400 api_usage_error      (under /v1/ only)
        │   └── UnknownModel    400 api_usage_error      (404 on Decisions' routes)
        ├── Unauthorized        401 unauthorized
        │   └── TokenMissing    401 unauthorized         (403 on System One's routes)
        ├── NotFound            404 not_found
        ├── MethodNotAllowed    405 method_not_allowed
        ├── RequestTooLarge     413 request_too_large
        ├── UnsupportedMedia    415 unsupported_media_type
        ├── InvalidRequest      422 invalid_request
        │   ├── MalformedJson   422 invalid_request
        │   ├── InvalidShape    422 invalid_request      (System One's routes only)
        │   ├── InvalidParameter 422 invalid_request     (400 on Decisions' routes)
        │   └── PromptTooLong   422 invalid_request
        ├── Overloaded          429 overloaded           (Retry-After)
        ├── ClientClosed        499 client_closed
        ├── ScoringFailed       500 scoring_failed
        │   └── EngineFault     500 scoring_failed       (servers of a remote engine only)
        ├── OutOfMemory         503 out_of_memory        (Retry-After)
        └── ScoringTimeout      504 timeout

A message is one plain sentence. It never holds text of a request, a path or a traceback. What
System One's routes say to their caller may repeat what the caller sent, as their contract asks.
"""

from collections.abc import Sequence
from typing import Any


class SemifError(Exception):
    """Base of every error this product raises on purpose."""


class StartupError(SemifError):
    """The service must not start: a setting, a weight or a start-up proof is wrong."""


class EngineUnfit(StartupError):
    """A model cannot carry an engine, whatever is set; it is left out unless it is the default."""


class EvidenceError(SemifError):
    """Calibration or acceptance cannot go on: bad input, a service that is gone or has changed."""


class RequestError(SemifError):
    """One request fails with a status and a stable code; everything else goes on."""

    status: int = 500
    code: str = "scoring_failed"
    retry_after_s: int | None = None

    def __init__(self, message: str, *, retry_after_s: int | None = None) -> None:
        super().__init__(message)
        if retry_after_s is not None:
            self.retry_after_s = retry_after_s

    @property
    def message(self) -> str:
        """The sentence that goes to the client."""
        return str(self.args[0])


class UsageError(RequestError):
    """The body has the right shape and asks for what cannot be done.

    Args:
        message: for the caller; it may name the caller's own ids.
        is_bare: whether the message stands alone on the wire, without a type beside it.
    """

    status, code = 400, "api_usage_error"

    def __init__(self, message: str, *, is_bare: bool = False) -> None:
        super().__init__(message)
        self.is_bare = is_bare


class UnknownModel(UsageError):
    """Nothing that is served goes by the name that a request gives."""


class Unauthorized(RequestError):
    """The bearer token is missing or wrong."""

    status, code = 401, "unauthorized"


class TokenMissing(Unauthorized):
    """There is no bearer token at all."""


class NotFound(RequestError):
    """There is no such route."""

    status, code = 404, "not_found"


class MethodNotAllowed(RequestError):
    """The route exists, the method does not."""

    status, code = 405, "method_not_allowed"


class RequestTooLarge(RequestError):
    """The body is over the byte limit."""

    status, code = 413, "request_too_large"


class UnsupportedMedia(RequestError):
    """The body is not JSON, or comes in an encoding that is not taken."""

    status, code = 415, "unsupported_media_type"


class InvalidRequest(RequestError):
    """The caller's input is wrong; the message says where and why."""

    status, code = 422, "invalid_request"


class MalformedJson(InvalidRequest):
    """The body is not JSON: the parser's reason, at a character counted from 0."""

    def __init__(self, message: str, *, reason: str, position: int) -> None:
        super().__init__(message)
        self.reason = reason
        self.position = position


class InvalidShape(InvalidRequest):
    """The body does not fit its schema: one detail for each fault, as pydantic words them.

    The details hold nothing of what was sent.
    """

    def __init__(self, details: Sequence[dict[str, Any]]) -> None:
        super().__init__("The body does not fit its schema.")
        self.details = tuple(details)


class InvalidParameter(InvalidRequest):
    """The body is wrong at one place, which the message names.

    Args:
        message: one sentence; it quotes nothing of the body.
        param: the place, as `questions[2].choices`; None for the body as a whole.
        kind: one word for what is wrong there, such as `missing_required_parameter`.
    """

    def __init__(self, message: str, *, param: str | None, kind: str) -> None:
        super().__init__(message)
        self.param = param
        self.kind = kind


class PromptTooLong(InvalidRequest):
    """A prompt is over its token limit, or a request over its own, of tokens or of pairs."""


class Overloaded(RequestError):
    """The queue is full."""

    status, code, retry_after_s = 429, "overloaded", 1


class ClientClosed(RequestError):
    """The client went away; only logs and metrics see this."""

    status, code = 499, "client_closed"


class ScoringFailed(RequestError):
    """The scorer failed for a reason that is not the caller's."""

    status, code = 500, "scoring_failed"


class EngineFault(ScoringFailed):
    """A server of a remote engine cannot be reached, or answers what must not be believed.

    Args:
        message: one sentence; it holds nothing of the server's answer.
        kind: one word for the metric, such as `not_finite`.
    """

    def __init__(self, message: str, *, kind: str, retry_after_s: int | None = None) -> None:
        super().__init__(message, retry_after_s=retry_after_s)
        self.kind = kind


class OutOfMemory(RequestError):
    """The device ran out of memory for this request; the process stays up."""

    status, code, retry_after_s = 503, "out_of_memory", 5


class ScoringTimeout(RequestError):
    """No answer in time; the slot stays taken until the work has really ended."""

    status, code = 504, "timeout"
