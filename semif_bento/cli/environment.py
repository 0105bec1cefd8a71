"""The variables a command starts from: the environment over an env file, token made when missing.

Knows nothing of what the variables mean, except which of them are secret.
"""

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from semif_bento.errors import StartupError
from semif_bento.settings import Settings

TOKEN, TOKEN_FILE = "SEMIF_API_TOKEN", "SEMIF_API_TOKEN_FILE"
ENVIRONMENT, MADE = "environment", "made for this run"


@dataclass(frozen=True, slots=True)
class Environment:
    """Variables with their values, and for each of them where its value comes from."""

    values: Mapping[str, str]
    sources: Mapping[str, str]

    def has_token(self) -> bool:
        """Tell whether a token is given, directly or by a file."""
        return bool(self.values.get(TOKEN) or self.values.get(TOKEN_FILE))

    def with_value(self, name: str, value: str, source: str) -> "Environment":
        """Return a copy with one variable set."""
        return replace(
            self,
            values={**self.values, name: value},
            sources={**self.sources, name: source},
        )

    def with_token(self) -> "Environment":
        """Return itself, or a copy with a fresh random token where none is given."""
        if self.has_token():
            return self
        return self.with_value(TOKEN, secrets.token_urlsafe(32), MADE)

    def settings(self) -> Settings:
        """Return the checked settings.

        Raises:
            StartupError: a setting is unknown, unreadable or out of range.
        """
        return Settings.from_env(self.values)


def read_environment(environ: Mapping[str, str], env_files: Iterable[Path]) -> Environment:
    """Lay the environment over env files; a later file over an earlier one.

    An empty value counts as not set, in both.

    Raises:
        StartupError: a file cannot be read, or one of its lines is not NAME=VALUE.
    """
    values: dict[str, str] = {}
    sources: dict[str, str] = {}
    layers = [(str(path), read_env_file(path)) for path in env_files]
    for source, layer in (*layers, (ENVIRONMENT, environ)):
        for name, value in layer.items():
            if value.strip() or name not in values:
                values[name], sources[name] = value, source
    return Environment(values, sources)


def read_env_file(path: Path) -> dict[str, str]:
    """Read NAME=VALUE lines; blank lines and lines that begin with # say nothing.

    A value is the rest of its line without surrounding white space, as Docker reads such files:
    quotes are part of it and no variable is expanded.

    Raises:
        StartupError: the file cannot be read, or a line is not NAME=VALUE.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeError) as exc:
        raise StartupError(f"The env file {path} cannot be read: {type(exc).__name__}.") from exc
    values = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, equals, value = line.partition("=")
        if not equals or not name.strip().isidentifier():
            raise StartupError(f"Line {number} of the env file {path} is not NAME=VALUE.")
        values[name.strip()] = value.strip()
    return values
