"""Scripted engines, and gateways over them in this process."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from scripted_engine import MODEL, ScriptedEngine

from semif_bento.backend import Backend
from semif_bento.settings import Settings


@pytest.fixture(scope="session")
def tokenizer_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tokenizer of one token a byte, as SEMIF_MODEL."""
    from models.byte_qwen import byte_tokenizer

    directory = tmp_path_factory.mktemp("tokenizer")
    byte_tokenizer().save_pretrained(directory)
    return directory


@pytest.fixture(params=["vllm", "sglang"])
def dialect(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def engines(dialect: str) -> Iterator[tuple[ScriptedEngine, ScriptedEngine]]:
    """Two servers of one engine, each with a tokenizer of its own."""
    from models.byte_qwen import byte_tokenizer

    first, second = (ScriptedEngine(dialect, byte_tokenizer()).start() for _ in range(2))
    yield first, second
    first.stop()
    second.stop()


class Gateways:
    """Opens backends over engines, and closes them."""

    def __init__(self, tokenizer_directory: Path) -> None:
        self._tokenizer_directory = tokenizer_directory
        self._opened: list[Backend] = []

    def __call__(self, *engines: ScriptedEngine, **changes: object) -> Backend:
        """Open a backend; keywords are fields of `Settings`."""
        from semif_bento.remote.startup import open_backend

        given: dict[str, object] = {
            "api_token": "t" * 40,
            "model": str(self._tokenizer_directory),
            "revision": "r1",
            "dtype": "float32",
            "max_tokens": 2048,
            "backend": engines[0].dialect,
            "backend_urls": tuple(engine.url for engine in engines),
            "backend_model": MODEL,
            "backend_timeout_s": 10.0,
            "backend_check_s": 0.05,
        }
        self._opened.append(open_backend(Settings(**(given | changes))))
        return self._opened[-1]

    def close(self, *backends: Backend) -> None:
        """Close these, or all that are open."""
        for backend in backends or self._opened:
            backend.close()
        self._opened = [b for b in self._opened if backends and b not in backends]


@pytest.fixture
def gateway(tokenizer_directory: Path) -> Iterator[Gateways]:
    made = Gateways(tokenizer_directory)
    yield made
    made.close()
