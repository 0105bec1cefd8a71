"""The whole service over two engine servers: nothing above the scheduler knows or hangs."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from asking import eventually
from live import ROW, Client, Server, error_of, send_and_leave
from models.byte_qwen import byte_tokenizer
from scripted_engine import KEY, MODEL, Answer, ScriptedEngine

PRIVATE = "a very private state"


@pytest.fixture(scope="module")
def two_engines() -> Iterator[list[ScriptedEngine]]:
    engines = [ScriptedEngine("vllm", byte_tokenizer()).start() for _ in range(2)]
    for engine in engines:
        engine.key = KEY
    yield engines
    for engine in engines:
        engine.stop()


def remote_environ(directory: Path, engines: list[ScriptedEngine]) -> dict[str, str]:
    return {
        "SEMIF_MODEL": str(directory),
        "SEMIF_DTYPE": "float32",
        "SEMIF_BACKEND": "vllm",
        "SEMIF_BACKEND_URLS": ",".join(engine.url for engine in engines),
        "SEMIF_BACKEND_MODEL": MODEL,
        "SEMIF_BACKEND_KEY": KEY,
        "SEMIF_BACKEND_CHECK_S": "0.1",
        "SEMIF_BACKEND_CONCURRENCY": "4",
        "SEMIF_TIMEOUT_S": "20",
        "SEMIF_MAX_TOKENS": "2048",
    }


@pytest.fixture(scope="module")
def remote_server(
    two_engines: list[ScriptedEngine],
    tokenizer_directory: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("gateway")
    started = Server(home, "service:SemIf", **remote_environ(tokenizer_directory, two_engines))
    yield started.wait_until_ready()
    assert started.stop() == 0
    for secret in (KEY, "private"):
        assert secret not in started.log()


@pytest.fixture
def engines(two_engines: list[ScriptedEngine], client: Client) -> Iterator[list[ScriptedEngine]]:
    """Both servers, truthful again and asked again after each test."""
    yield two_engines
    for engine in two_engines:
        engine.delay_s, engine.refuse, engine.hang_up = 0.0, None, False
    eventually(lambda: all(server["is_ready"] for server in health(client)["servers"]))


@pytest.fixture
def client(remote_server: Server) -> Iterator[Client]:
    made = Client(remote_server)
    yield made
    made.close()


def health(client: Client) -> dict:
    return client.get("/health").json()


def test_the_routes_answer_as_ever_and_say_who_computed(client, engines, tokenizer_directory):
    body = client.decide(diagnostics=True, state=PRIVATE).json()
    assert list(body)[:5] == [
        "id", "option_ids", "probabilities", "option_logits", "input_tokens",
    ]  # fmt: skip
    assert list(body)[-4:] == ["readout", "probability_status", "engine", "diagnostics"]
    assert body["readout"].endswith("by vllm 9.9.9")
    assert body["model"]["source"] == str(tokenizer_directory)
    assert body["model"]["device"] == f"vllm 9.9.9 on 2 servers, serving {MODEL}"
    assert 0 < body["diagnostics"]["letter_mass"] < 1
    question = {"id": "q", "question": "Which?", "options": [
        {"id": "y", "description": "Yes"}, {"id": "n", "description": "No"}]}  # fmt: skip
    shared = client.post("/decide/shared", json={"state": PRIVATE, "decisions": [question]}).json()
    [result] = shared["results"]
    assert result["model"]["serving_config"] == "remote-vllm-v1"
    assert result["probabilities"] == pytest.approx(client.decide(
        state=PRIVATE, **question).json()["probabilities"])  # fmt: skip


def test_system_one_is_answered_by_the_servers_too(client, engines, tokenizer_directory):
    model = f"{tokenizer_directory}@r1"
    questions = {"open": {"type": "noul", "instructions": "Is it open?"}}
    answer = client.post(
        "/v1/systemone", json={"model": model, "state": PRIVATE, "questions": questions}
    )
    assert answer.status_code == 200, answer.text
    assert list(answer.json()["answers"]) == ["open"]


def test_health_and_metrics_show_the_servers_by_name(client, engines):
    client.decide(state=PRIVATE)
    shown = health(client)
    assert [server["name"] for server in shown["servers"]] == [engine.name for engine in engines]
    assert sum(server["calls"] for server in shown["servers"]) >= 1
    assert shown["device_name"] == "vllm on 2 servers"
    for engine in engines:
        assert client.metric(f'semif_engine_ready{{server="{engine.name}"') == 1


def test_an_engines_full_queue_is_a_429_with_retry_after(client, engines):
    for engine in engines:
        engine.refuse = Answer(503, b"{}")
    answer = client.decide(state=PRIVATE)
    assert error_of(answer) == (429, "overloaded")
    assert answer.headers["retry-after"] == "1"


def test_a_fault_is_a_500_that_is_counted_by_kind(client, engines):
    before = client.metric('semif_engine_faults_total{kind="refused"}')
    for engine in engines:
        engine.refuse = Answer(400, PRIVATE.encode())
    assert error_of(client.decide(state=PRIVATE)) == (500, "scoring_failed")
    assert client.metric('semif_engine_faults_total{kind="refused"}') == before + 1


def test_without_any_server_the_gateway_stays_up_and_says_to_come_back(client, engines):
    for engine in engines:
        engine.stop()
    answer = client.decide(state=PRIVATE)
    assert error_of(answer) == (500, "scoring_failed")
    assert answer.headers["retry-after"] == "1"
    eventually(lambda: not any(server["is_ready"] for server in health(client)["servers"]))
    for engine in engines:
        engine.start()
    eventually(lambda: client.decide(state=PRIVATE).status_code == 200)


def test_a_client_that_hangs_up_closes_the_engines_connection(client, engines):
    for engine in engines:
        engine.delay_s, engine.given_up = 300.0, 0

    def is_asked() -> None:
        eventually(lambda: sum(engine.running for engine in engines) == 1)

    row = {**ROW, "state": PRIVATE}
    send_and_leave(client.server, "/decide", row, "hangs-up", when=is_asked)
    eventually(lambda: sum(engine.given_up for engine in engines) == 1)
    assert not any(engine.running for engine in engines)


def test_calls_run_beside_each_other(client, engines):
    for engine in engines:
        engine.delay_s = 300.0
    with ThreadPoolExecutor() as pool:
        calls = [pool.submit(client.decide, state=PRIVATE) for _ in range(4)]
        eventually(lambda: any(engine.running > 1 for engine in engines))
        for engine in engines:
            engine.delay_s = 0.0
        assert [call.result().status_code for call in calls] == [200] * 4


def test_a_callers_fault_reaches_no_server(client, engines):
    before = [len(engine.calls) for engine in engines]
    assert error_of(client.decide(state="x" * 4000)) == (422, "invalid_request")
    assert error_of(client.decide(state="")) == (422, "invalid_request")
    assert error_of(client.decide(workload="none")) == (422, "invalid_request")
    assert httpx.post(f"{client.server.url}/decide", json={}).status_code == 401
    assert [len(engine.calls) for engine in engines] == before


def test_a_start_without_a_server_ends_with_one_line(tokenizer_directory, tmp_path):
    missing = ScriptedEngine("vllm", byte_tokenizer())
    server = Server(tmp_path, "service:SemIf", **remote_environ(tokenizer_directory, [missing]))
    assert server.process.wait(60) == 1
    assert server.log_line("cannot be reached").endswith(
        f"{missing.name}: An engine server cannot be reached."
    )
    assert "Traceback" not in server.log()
