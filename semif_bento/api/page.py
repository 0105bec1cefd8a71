"""The page to try a decision by hand; knows nothing of what it shows.

It is one file without outside assets, the same for everyone: the browser asks the person for the
token and calls the other routes with it. Nothing of it is kept when the page is closed.
"""

import base64
import functools
import hashlib
import re
from pathlib import Path

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

_FILE = Path(__file__).with_name("page.html")


async def respond(_: Request) -> Response:
    """Answer GET /docs."""
    text, policy = _read()
    return HTMLResponse(text, headers={"content-security-policy": policy})


@functools.cache
def _read() -> tuple[str, str]:
    """Return the page and the policy that lets it run its own script and style, and no others."""
    text = _FILE.read_text(encoding="utf-8")
    allowed = {kind: _digests(text, kind) for kind in ("script", "style")}
    return text, (
        "default-src 'none'; connect-src 'self'; img-src data:; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'; "
        f"script-src {allowed['script']}; style-src {allowed['style']}"
    )


def _digests(text: str, tag: str) -> str:
    parts = re.findall(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
    digests = (base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in parts)
    return " ".join(f"'sha256-{digest}'" for digest in digests)
