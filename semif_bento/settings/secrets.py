"""The secrets among the settings, each given directly or by a file; knows nothing of their use.

No message ever repeats one.
"""

from collections.abc import Mapping
from typing import Any

from semif_bento.errors import StartupError

MIN_TOKEN_CHARACTERS = 32


def read_token(found: Mapping[str, Any]) -> str:
    """Return the token that callers must send.

    Raises:
        StartupError: there is none, it is given twice, unreadable, too short or not plain ASCII.
    """
    token, source = _secret(found, "api_token")
    if not token:
        raise StartupError("SEMIF_API_TOKEN or SEMIF_API_TOKEN_FILE is required.")
    if len(token) < MIN_TOKEN_CHARACTERS:
        raise StartupError(f"{source} must hold at least {MIN_TOKEN_CHARACTERS} characters.")
    return token


def read_backend_key(found: Mapping[str, Any]) -> str:
    """Return the key that a remote engine's servers ask for, empty where none is given.

    Raises:
        StartupError: it is given twice, unreadable, an empty file or not plain ASCII.
    """
    key, source = _secret(found, "backend_key")
    if found.get("backend_key_file") and not key:
        raise StartupError(f"{source} is empty.")
    return key


def _secret(found: Mapping[str, Any], name: str) -> tuple[str, str]:
    """Return a secret, and the variable that gives it."""
    secret, file = found.get(name, ""), found.get(f"{name}_file")
    source = f"SEMIF_{name.upper()}"
    if secret and file:
        raise StartupError(f"Set {source} or {source}_FILE, not both.")
    if file:
        source += "_FILE"
        try:
            secret = file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeError) as exc:
            raise StartupError(f"{source} cannot be read: {type(exc).__name__}.") from None
    if not secret.isascii() or any(c.isspace() or not c.isprintable() for c in secret):
        raise StartupError(f"{source} must be printable ASCII without white space.")
    return secret, source
