"""The one error tree of the product; knows nothing of HTTP libraries, torch or BentoML.

    SemifError
    ├── StartupError            the service must not start; one line, exit code 1
    └── RequestError            one request fails; the process goes on
        ├── Unauthorized        401 unauthorized
        ├── NotFound            404 not_found
        ├── MethodNotAllowed    405 method_not_allowed
        ├── RequestTooLarge     413 request_too_large
        ├── UnsupportedMedia    415 unsupported_media_type
        ├── InvalidRequest      422 invalid_request
        │   └── PromptTooLong   422 invalid_request
        ├── Overloaded          429 overloaded           (Retry-After)
        ├── ClientClosed        499 client_closed
        ├── ScoringFailed       500 scoring_failed
        ├── OutOfMemory         503 out_of_memory        (Retry-After)
        └── ScoringTimeout      504 timeout

A message is one plain sentence. It never holds text of a request, a path or a traceback.
"""


class SemifError(Exception):
    """Base of every error this product raises on purpose."""


class StartupError(SemifError):
    """The service must not start: a setting, a weight or a start-up proof is wrong."""


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


class Unauthorized(RequestError):
    """The bearer token is missing or wrong."""

    status, code = 401, "unauthorized"


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


class PromptTooLong(InvalidRequest):
    """A prompt, or a request as a whole, is over its token limit."""


class Overloaded(RequestError):
    """The queue is full."""

    status, code, retry_after_s = 429, "overloaded", 1


class ClientClosed(RequestError):
    """The client went away; only logs and metrics see this."""

    status, code = 499, "client_closed"


class ScoringFailed(RequestError):
    """The scorer failed for a reason that is not the caller's."""

    status, code = 500, "scoring_failed"


class OutOfMemory(RequestError):
    """The device ran out of memory for this request; the process stays up."""

    status, code, retry_after_s = 503, "out_of_memory", 5


class ScoringTimeout(RequestError):
    """No answer in time; the slot stays taken until the work has really ended."""

    status, code = 504, "timeout"
