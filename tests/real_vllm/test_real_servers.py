"""The gateway over two real vLLM servers; run by `make remote-check`. Figures are printed.

SmolLM2-135M in float32, one core a server: in a smaller type, two right ways to compute differ by
more than what is proven here.
"""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from statistics import median

import httpx
import pytest
from live import Client
from models import rows
from models.loaded import load_smollm2
from models.scorers import assemble
from real_engine import MODEL

from semif_bento.decisions import ScoreRequest
from semif_bento.engine.letters.encoding import Encoder
from semif_bento.evidence.rows import bundled_rows, read_rows
from semif_bento.remote.vllm import VllmDialect

pytestmark = pytest.mark.vllm

ROWS = 200
PAUSE_S = 2.0  # an engine that has just answered spins for a while on the same cores
SIZES = ((1, 150), (21, 150), (21, 1000))
REPEATS = 3


@pytest.fixture(scope="module")
def torch_scorer():
    return assemble(
        load_smollm2("float32"), max_tokens=4096, branch_budget_mib=1024, prefix_cache_mib=256
    )


def say(text: str) -> None:
    print(f"\n  {text}", flush=True)


def body_of(request: ScoreRequest, index: int = 0) -> dict:
    decision = request.decisions[index]
    options = [{"id": o.id, "description": o.description} for o in decision.options]
    return {"id": decision.id, "question": decision.question, "options": options}


def decide(client: Client, request: ScoreRequest, timeout_s: float = 300) -> dict:
    body = {"state": request.state, **body_of(request)}
    answer = client.post("/decide", json=body, timeout=timeout_s)
    assert answer.status_code == 200, answer.text
    return answer.json()


def decide_shared(client: Client, request: ScoreRequest) -> dict:
    decisions = [body_of(request, index) for index in range(len(request.decisions))]
    body = {"state": request.state, "decisions": decisions}
    answer = client.post("/decide/shared", json=body, timeout=300)
    assert answer.status_code == 200, answer.text
    return answer.json()


def sized_request(decisions: int, state_tokens: int, mark: str) -> ScoreRequest:
    """A state of about so many tokens that no cache has seen, and questions about it."""
    words = "The order of lamp seven was packed and the courier took it along today. "
    state = f"{mark}. " + words * (state_tokens // 15)
    asked = [
        {
            "id": f"d{n}",
            "state": state,
            "question": f"Is claim number {n} established by the evidence?",
            "options": [{"id": x, "description": f"The claim is {x}"} for x in ("true", "open")],
        }
        for n in range(decisions)
    ]
    return rows.request_of(asked)


def test_two_hundred_rows_equal_the_torch_engine(gateway, torch_scorer):
    labelled = [row.request() for row in read_rows(bundled_rows(), labelled=False).rows]
    made = (rows.request_of(group) for group in rows.generate(ROWS, 1, seed=8))
    asked = [*labelled, *islice(made, ROWS - len(labelled))]
    with ThreadPoolExecutor(4) as pool:
        remote = list(pool.map(lambda request: decide(gateway, request), asked))
    gaps = []
    for request, theirs in zip(asked, remote, strict=True):
        ours = torch_scorer.direct(request).scores
        assert theirs["prompt_sha256"] == ours.prompt_sha256
        assert theirs["input_tokens"] == ours.input_tokens
        gaps.append(max(map(abs, map(float.__sub__, theirs["probabilities"], ours.probabilities))))
        winners = [max(range(len(p)), key=p.__getitem__) for p in (
            theirs["probabilities"], ours.probabilities)]  # fmt: skip
        assert winners[0] == winners[1]
    say(f"{len(asked)} rows against torch: largest gap {max(gaps):.2g}, median {median(gaps):.2g}, "
        "all winners equal")  # fmt: skip
    assert len(asked) == ROWS
    assert max(gaps) < 1e-4


def test_shared_calls_equal_the_torch_engine(gateway, torch_scorer):
    gaps = []
    for group in rows.generate(states=8, decisions_each=6, seed=9):
        request = rows.request_of(group)
        theirs, ours = decide_shared(gateway, request), torch_scorer.shared(request)
        for one, other in zip(theirs["results"], ours.scores, strict=True):
            gaps += map(abs, map(float.__sub__, one["probabilities"], other.probabilities))
    say(f"48 shared decisions against torch: largest gap {max(gaps):.2g}")
    assert max(gaps) < 1e-4


def test_the_gateways_hidden_cost(gateway, real_engines):
    request = sized_request(1, 150, "hidden cost")
    decide(gateway, request)
    shown = gateway.get("/health").json()["servers"]
    encoder = Encoder(load_smollm2("float32").tokenizer, 4096)
    encoded = encoder.encode(request)
    ask = VllmDialect().ask_scores(MODEL, [encoded.whole(0)], encoded.decisions[0].slot_ids)
    through, straight, inside = [], [], []
    before = {server["name"]: server["calls"] for server in shown}
    decide(gateway, request)
    after = {s["name"]: s["calls"] for s in gateway.get("/health").json()["servers"]}
    [home] = [name for name in after if after[name] > before[name]]
    engine = next(engine for engine in real_engines if engine.url.endswith(home))
    with httpx.Client(timeout=60) as client:
        engine.ask(client, ask.body)
        for _ in range(60):
            started = time.perf_counter()
            engine.ask(client, ask.body)
            straight.append(time.perf_counter() - started)
            started = time.perf_counter()
            told = decide(gateway, request)
            through.append(time.perf_counter() - started)
            inside.append(through[-1] - told["forward_seconds"])
    cost_ms = (median(through) - median(straight)) * 1000
    say(f"one decision, state warm: engine alone p50 {median(straight) * 1000:.1f} ms, through the "
        f"gateway {median(through) * 1000:.1f} ms: hidden cost {cost_ms:.1f} ms; outside of the "
        f"engine call {median(inside) * 1000:.1f} ms")  # fmt: skip
    assert cost_ms < 25  # on two cores that the engines take as well; the wish is 5


def test_a_client_that_leaves_frees_the_engine(gateway, real_engines):
    request = sized_request(40, 1500, "cancelled")
    decisions = [body_of(request, index) for index in range(40)]
    started = time.perf_counter()
    with pytest.raises(httpx.ReadTimeout):
        gateway.post(
            "/decide/shared", json={"state": request.state, "decisions": decisions}, timeout=2
        )
    while any(engine.running() for engine in real_engines):
        assert time.perf_counter() - started < 120
        time.sleep(0.1)
    free_s = time.perf_counter() - started - 2
    say(f"a client left after 2 s: the engine was free {free_s:.1f} s later")


@pytest.mark.parametrize("how", ["whole", "core"])
def test_a_server_killed_under_load_loses_no_request_and_returns(gateway, real_engines, how):
    victim = real_engines[0]
    outcomes: list[int] = []
    is_over = threading.Event()

    def ask(worker: int) -> None:
        count = 0
        while not is_over.is_set():
            count += 1
            request = sized_request(1, 60, f"{how} {worker} {count}")
            body = {"state": request.state, **body_of(request)}
            outcomes.append(gateway.post("/decide", json=body, timeout=120).status_code)

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    time.sleep(8)
    before = len(outcomes)
    victim.kill() if how == "whole" else victim.kill_core()
    time.sleep(12)
    is_over.set()
    for thread in threads:
        thread.join(180)
    say(f"killed ({how}) under load: {len(outcomes)} requests, {before} before, "
        f"{sum(code != 200 for code in outcomes)} lost")  # fmt: skip
    assert set(outcomes) == {200}
    name = victim.url.removeprefix("http://")
    assert not is_ready(gateway, name)
    victim.kill()
    started = time.perf_counter()
    victim.start()
    while not is_ready(gateway, name):
        assert time.perf_counter() - started < 600
        time.sleep(0.5)
    say(f"started again, proven and asked again after {time.perf_counter() - started:.0f} s")


def is_ready(gateway: Client, name: str) -> bool:
    servers = gateway.get("/health").json()["servers"]
    return next(server["is_ready"] for server in servers if server["name"] == name)


def test_timings_beside_the_torch_engine(gateway, torch_scorer):
    say("decisions × state tokens | torch cold / warm | gateway and vLLM cold / warm (median s)")
    for decisions, tokens in SIZES:
        ours: tuple[list[float], list[float]] = ([], [])
        theirs: tuple[list[float], list[float]] = ([], [])
        for repeat in range(REPEATS):
            request = sized_request(decisions, tokens, f"timing {tokens} {decisions} {repeat}")
            for times in ours:
                started = time.perf_counter()
                torch_scorer.shared(request)
                times.append(time.perf_counter() - started)
            time.sleep(PAUSE_S)
            for times in theirs:
                started = time.perf_counter()
                decide_shared(gateway, request)
                times.append(time.perf_counter() - started)
            time.sleep(PAUSE_S)
        figures = [median(times) for times in (*ours, *theirs)]
        say("{} × {} | {:.2f} / {:.2f} | {:.2f} / {:.2f}".format(decisions, tokens, *figures))
