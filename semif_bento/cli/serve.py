"""`semif-bento serve`: run the service in the foreground and say how to ask it.

Knows nothing of models or requests; the child process is BentoML's own server.
"""

import argparse
import json
import os
import shlex
import signal
from pathlib import Path
from types import FrameType

import semif_bento
from semif_bento.cli.environment import (
    ENVIRONMENT,
    MADE,
    TOKEN,
    TOKEN_FILE,
    Environment,
    read_environment,
)
from semif_bento.cli.sample import DECISION
from semif_bento.cli.server import Server, start_server


def run(args: argparse.Namespace) -> int:
    """Serve until the server ends or SIGINT, SIGTERM or SIGHUP comes; return its exit code.

    Raises:
        StartupError: a setting is wrong, or the port is taken; nothing was started then.
    """
    environment = read_environment(os.environ, args.env_file).with_token()
    settings = environment.settings()
    work = f"loading {settings.model} on {settings.device}"
    if settings.is_remote:
        work = f"proving {len(settings.backend_urls)} {settings.backend} servers"
    print(f"semif-bento {semif_bento.__version__}: {work}", flush=True)
    server = start_server(environment.values, args.host, args.port)
    _forward_signals(server)
    try:
        if server.wait_ready(timeout_s=None, on_wait=lambda waited_s: None):
            print(_announcement(server.url, environment), flush=True)
        code = server.process.wait()
    finally:
        server.stop()
    return code if code >= 0 else 128 - code


def curl_line(url: str, environment: Environment) -> str:
    """Return a shell line that asks the server one decision, as it can be pasted."""
    body = json.dumps(DECISION, ensure_ascii=False)
    return (
        f'curl -s {url}/decide -H "Authorization: Bearer {_shell_token(environment)}" '
        f"-H 'Content-Type: application/json' -d '{body}'"
    )


def _shell_token(environment: Environment) -> str:
    """Return what a shell turns into the token; the token itself only where it was made here."""
    if file := environment.values.get(TOKEN_FILE):
        return f"$(cat {shlex.quote(str(Path(file).resolve()))})"
    source = environment.sources[TOKEN]
    if source == MADE:
        return environment.values[TOKEN]
    if source == ENVIRONMENT:
        return f"${TOKEN}"
    return f"$(sed -n 's/^{TOKEN}=//p' {shlex.quote(str(Path(source).resolve()))})"


def _announcement(url: str, environment: Environment) -> str:
    return (
        f"\nReady at {url} (Ctrl-C stops it). Ask it from another terminal:\n\n"
        f"{curl_line(url, environment)}\n"
    )


def _forward_signals(server: Server) -> None:
    """Pass the first signal on as SIGTERM, so that a running call finishes; the next one kills."""
    stopping = False

    def forward(number: int, frame: FrameType | None) -> None:
        nonlocal stopping
        if server.process.poll() is None:
            if stopping:
                os.killpg(server.process.pid, signal.SIGKILL)
            else:
                server.process.send_signal(signal.SIGTERM)
        stopping = True

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, forward)
