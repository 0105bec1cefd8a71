"""`semif-bento bench`: time shared and direct scoring against SemIf's reference scorers.

Prints a row as soon as it is measured; the last line of standard output is one JSON object. Knows
nothing of how a call is scored.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from semif_bento.cli.environment import read_environment
from semif_bento.cli.sample import DECISION
from semif_bento.cli.server import free_port, project_root, start_server
from semif_bento.errors import StartupError
from semif_bento.settings import Settings

if TYPE_CHECKING:
    import httpx

DECISIONS, STATE_TOKENS = (2, 8, 21, 64), (100, 1000, 3000)
QUICK = ((21, 1000), (64, 3000), (2, 3000))
PROMPT_TOKENS = 150
MIB = 2**20
HEADER = (
    f"{'model':<12}{'decisions':>9}{'state':>7}{'reference':>11}{'cold':>9}{'warm':>9}"
    f"{'ratio':>8}{'warm':>7}{'floor':>9}{'warm':>9}{'peak MiB':>16}{'max Δ':>9}{'flips':>6}"
)


def run(args: argparse.Namespace) -> int:
    """Measure every cell and print it; return 0.

    Raises:
        StartupError: a model or the reference scorers are missing, or the service did not start.
    """
    import torch
    import transformers

    torch.set_num_threads(args.threads)
    warnings.simplefilter("ignore", FutureWarning)  # the reference's own, about its library
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    report: dict[str, object] = {"threads": args.threads, "dtype": args.dtype}
    report |= _scorers(args)
    report["http_overhead_ms"] = None if args.no_http else _http_overhead(args.calls)
    print(json.dumps(report))
    return 0


def _scorers(args: argparse.Namespace) -> dict[str, object]:
    from semif_bento.bench.cells import MAX_TOKENS, time_direct, time_shared
    from semif_bento.bench.floor import Floor
    from semif_bento.bench.target import open_target

    settings = Settings(
        device=args.device,
        dtype=args.dtype,
        max_tokens=MAX_TOKENS,
        branch_budget_mib=args.budget_mib,
        branch_attention=args.branch_attention,
        prefix_cache_mib=1024,
        cache_dir=Path("~/.cache/semif-bento").expanduser(),
    )
    cells, direct = [], []
    for name in args.models:
        target = open_target(name, settings)
        floor = Floor.of(target.model)
        print(
            f"\n{name}, {args.dtype} on {settings.device}, {args.threads} thread(s): "
            f"{floor.flops_per_second / 1e9:.0f} GFLOP/s in matrix products, "
            f"{target.scorer.status().matrix_products} products, "
            f"{target.scorer.serving_config}\nseconds are medians; reference and ours in turn\n"
        )
        one = time_direct(target, floor, PROMPT_TOKENS, args.repeats)
        direct.append(asdict(one))
        print(
            f"one decision, {one.prompt_tokens} tokens: reference {one.reference_s:.3f} s, ours "
            f"{one.direct_s:.3f} s, ratio {one.ratio:.2f}, floor {one.floor_s:.3f} s\n\n{HEADER}"
        )
        for decisions, state_tokens in _sizes(args.quick):
            cell = time_shared(target, floor, state_tokens, decisions, args.repeats)
            cells.append(asdict(cell))
            peaks = f"{cell.reference_peak_bytes / MIB:.0f} → {cell.peak_bytes / MIB:.0f}"
            print(
                f"{name:<12}{decisions:>9}{state_tokens:>7}{cell.reference_s:>11.3f}"
                f"{cell.cold_s:>9.3f}{cell.warm_s:>9.3f}{cell.ratio_cold:>8.2f}"
                f"{cell.ratio_warm:>7.2f}{cell.floor_s:>9.3f}{cell.floor_warm_s:>9.3f}"
                f"{peaks:>16}{cell.max_logit_diff:>9.4f}{cell.flips:>6}",
                flush=True,
            )
    return {"cells": cells, "direct": direct}


def _sizes(quick: bool) -> Iterator[tuple[int, int]]:
    if quick:
        yield from QUICK
        return
    for state_tokens in STATE_TOKENS:
        for decisions in DECISIONS:
            yield decisions, state_tokens


def _http_overhead(calls: int) -> dict[str, float]:
    """Time what HTTP and the service add to the scorer's own seconds, over one connection."""
    import httpx

    env_file = project_root() / "configs" / "local.env"
    environment = read_environment(os.environ, [env_file]).with_token()
    headers = {"Authorization": f"Bearer {environment.settings().api_token}"}
    with tempfile.TemporaryDirectory(prefix="semif-bench-") as scratch:
        values = {**environment.values, "BENTOML_HOME": scratch}
        with (Path(scratch) / "server.log").open("wb") as output:
            server = start_server(values, "127.0.0.1", free_port(), output)
        try:
            if not server.wait_ready(300.0, lambda _: None):
                raise StartupError("The service ended while it started.")
            with httpx.Client(base_url=server.url, headers=headers, timeout=60) as client:
                extra = [_overhead_ms(client) for _ in range(calls + 1)][1:]  # the first warms up
        finally:
            server.stop()
    p50, p90 = statistics.median(extra), statistics.quantiles(extra, n=10)[-1]
    print(f"\nHTTP and service over the scorer call: p50 {p50:.2f} ms, p90 {p90:.2f} ms, N {calls}")
    return {"p50": p50, "p90": p90}


def _overhead_ms(client: "httpx.Client") -> float:
    started = time.perf_counter()
    answer = client.post("/decide", json=DECISION)
    seconds = time.perf_counter() - started
    answer.raise_for_status()
    return (seconds - answer.json()["total_seconds"]) * 1e3
