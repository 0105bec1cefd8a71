"""Two real vLLM servers of one core each, and the real service over them."""

from collections.abc import Iterator

import pytest
from live import Client, Server
from models.loaded import SMOLLM2
from models.qwen_vocabulary import CACHE_DIR
from real_engine import ENVIRONMENT, MODEL, RealEngine

from semif_bento.engine.loading import model_directory
from semif_bento.engine.sources import locate


@pytest.fixture(scope="session")
def real_engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[RealEngine]]:
    assert ENVIRONMENT.is_dir(), "`make remote-check` installs vLLM there"
    model = model_directory(locate(SMOLLM2, None), "float32", CACHE_DIR)
    logs = tmp_path_factory.mktemp("vllm")
    engines = [RealEngine(model, core, logs / f"{core}.log") for core in (0, 1)]
    try:
        for engine in engines:
            engine.start().wait_until_ready()
        yield engines
    finally:
        for engine in engines:
            engine.kill()


@pytest.fixture(scope="session")
def real_gateway(
    real_engines: list[RealEngine], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    started = Server(
        tmp_path_factory.mktemp("gateway"),
        "service:SemIf",
        SEMIF_MODEL=SMOLLM2,
        SEMIF_REVISION="",
        SEMIF_DTYPE="float32",
        SEMIF_BACKEND="vllm",
        SEMIF_BACKEND_URLS=",".join(engine.url for engine in real_engines),
        SEMIF_BACKEND_MODEL=MODEL,
        SEMIF_BACKEND_TIMEOUT_S="240",
        SEMIF_TIMEOUT_S="300",
    )
    yield started.wait_until_ready(limit_s=300)
    started.stop()


@pytest.fixture
def gateway(real_gateway: Server) -> Iterator[Client]:
    made = Client(real_gateway)
    yield made
    made.close()
