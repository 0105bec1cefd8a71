"""A real vLLM server on loopback: started on one core, killed whole, started again on its port."""

import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx
import psutil

ENVIRONMENT = Path(__file__).parents[2] / "build" / "vllm" / "env"
MODEL = "smollm2"
START_LIMIT_S = 600


class RealEngine:
    """One `vllm` API server in a process group of its own."""

    def __init__(self, model: Path, core: int, log: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._model, self._core, self._log = model, core, log

    def start(self) -> "RealEngine":
        environ = {
            **{k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
            "HF_HUB_OFFLINE": "1",
            "VLLM_NO_USAGE_STATS": "1",
            "DO_NOT_TRACK": "1",
            "VLLM_CPU_KVCACHE_SPACE": "1",
            "VLLM_CPU_OMP_THREADS_BIND": str(self._core),
            "OMP_NUM_THREADS": "1",
        }
        # The console script looks for a distribution of another name. Blocks of 32 tokens: of the
        # default 128, the last partial one is computed again for every decision.
        command = [
            *(ENVIRONMENT / "bin" / "python", "-m", "vllm.entrypoints.openai.api_server"),
            *("--model", self._model, "--served-model-name", MODEL, "--dtype", "float32"),
            *("--host", "127.0.0.1", "--port", str(self.port), "--max-model-len", "4224"),
            *("--max-num-seqs", "64", "--block-size", "32", "--enforce-eager"),
            "--enable-prefix-caching",
        ]
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                command, env=environ, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
        return self

    def wait_until_ready(self) -> "RealEngine":
        ends_s = time.monotonic() + START_LIMIT_S
        while time.monotonic() < ends_s and self.process.poll() is None:
            try:
                if httpx.get(f"{self.url}/health", timeout=2).status_code == 200:
                    return self
            except httpx.HTTPError:
                pass
            time.sleep(0.5)
        raise AssertionError(self._log.read_text()[-4000:])

    def kill(self) -> None:
        """End every process of the server at once, without a word to anyone."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def kill_core(self) -> None:
        """End the process that computes; the one that answers HTTP finds out."""
        [core] = [
            child
            for child in psutil.Process(self.process.pid).children()
            if "EngineCore" in child.name() or "EngineCore" in " ".join(child.cmdline())
        ]
        core.kill()

    def running(self) -> float:
        """Requests that the engine works on or has waiting."""
        lines = httpx.get(f"{self.url}/metrics", timeout=30).text.splitlines()
        names = ("vllm:num_requests_running{", "vllm:num_requests_waiting{")
        return sum(float(line.split()[-1]) for line in lines if line.startswith(names))

    def ask(self, client: httpx.Client, body: bytes) -> dict[str, Any]:
        """Ask the engine itself, with no gateway between."""
        headers = {"Content-Type": "application/json"}
        answer = client.post(f"{self.url}/v1/completions", content=body, headers=headers)
        answer.raise_for_status()
        return json.loads(answer.content)
