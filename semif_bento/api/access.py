"""One log line and one count for every answered request; knows nothing of how it was answered.

The line holds only what we chose or counted: a known route, never the raw path, a query or a body.
Probes that succeed are counted and not logged.
"""

import logging
import re
import time

from semif_bento.api.exchange import Exchange
from semif_bento.api.routes import PROBES
from semif_bento.serving import metrics

log = logging.getLogger(__name__)

_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")


def accept_request_id(given: bytes) -> str | None:
    """Return the client's request id if it is short and plain enough to log, or None."""
    return given.decode() if _REQUEST_ID.fullmatch(given) else None


def record(exchange: Exchange) -> None:
    """Log and count a request whose answer has been sent, or whose client has left."""
    code = exchange.code or "ok"
    metrics.REQUESTS.labels(exchange.route, code).inc()
    log.log(
        logging.DEBUG if exchange.route in PROBES and code == "ok" else logging.INFO,
        "request_id=%s trace_id=%s method=%s route=%s status=%d code=%s seconds=%.4f"
        " bytes_in=%d bytes_out=%d",
        exchange.request_id,
        exchange.trace_id,
        exchange.method,
        exchange.route,
        exchange.status,
        code,
        time.monotonic() - exchange.arrived_s,
        exchange.bytes_in,
        exchange.bytes_out,
    )
