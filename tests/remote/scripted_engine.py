"""An engine server on loopback that does what a test says; speaks vLLM's and SGLang's dialect.

It runs on a thread of its own, can be stopped and started again on its port, and knows which calls
it took and which of them their caller gave up.
"""

import asyncio
import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ports import free_port
from transformers import PreTrainedTokenizerFast

MODEL = "served-name"
KEY = "engine-key-0123456789"
STEP_S = 0.01
SCORE_PATHS = ("/v1/completions", "/generate", "/classify")

Compute = Callable[[Sequence[Sequence[int]], Sequence[int]], list[list[Any]]]
"""Prompts and ids to one row of log-probabilities a prompt."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)


def made_up(prompts: Sequence[Sequence[int]], ids: Sequence[int]) -> list[list[Any]]:
    """Log-probabilities that depend on nothing but prompt and id; 255 of them sum to under 1."""
    return [[-6 - (sum(p) * 31 + len(p) + i * 17) % 97 / 10 for i in ids] for p in prompts]


class ScriptedEngine:
    """Healthy and truthful until a test changes an attribute, at any time.

    `delay_s` is how long a call computes, also one that runs already; `spoil` changes the answer's
    JSON of a call, `refuse` answers a call in its place, `hang_up` drops its connection.
    """

    def __init__(self, dialect: str, tokenizer: PreTrainedTokenizerFast) -> None:
        self.dialect, self.tokenizer = dialect, tokenizer
        self.compute: Compute = made_up
        self.classify: Callable[[list[list[int]]], list[Any]] = lambda inputs: []
        self.models: list[dict[str, Any]] = [{"id": MODEL, "max_model_len": 4096}]
        self.version = "9.9.9"
        self.key = ""
        self.health = 200
        self.delay_s = 0.0
        self.spoil: Callable[[Any], Any] | None = None
        self.refuse: Answer | None = None
        self.hang_up = False
        self.calls: list[dict[str, Any]] = []
        self.running = self.most_running = self.given_up = self.checks = 0
        self.port = free_port()
        self.name = f"127.0.0.1:{self.port}"
        self.url = f"http://{self.name}"
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> "ScriptedEngine":
        ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, args=(self._loop, ready))
        self._thread.start()
        assert ready.wait(10)
        return self

    def stop(self) -> None:
        """End at once: every connection is reset and the port refuses the next."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join(10)
            self._loop = None

    def _run(self, loop: asyncio.AbstractEventLoop, ready: threading.Event) -> None:
        loop.run_until_complete(self._serve(ready))
        loop.close()

    async def _serve(self, ready: threading.Event) -> None:
        self._stopping = asyncio.Event()
        self._writers: set[asyncio.StreamWriter] = set()
        server = await asyncio.start_server(self._connection, "127.0.0.1", self.port)
        ready.set()
        await self._stopping.wait()
        server.close()
        # A connection that was just accepted, and an aborted one, take some turns of the loop.
        for _ in range(10):
            await asyncio.sleep(0)
            for writer in self._writers:
                writer.transport.abort()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for _ in range(3):
            await asyncio.sleep(0)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                line, *lines = head.split("\r\n")
                headers = {k.lower(): v for k, _, v in (x.partition(": ") for x in lines)}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                answer = await self._answer(line.split(" ")[1], headers, body, reader)
                if answer is None:
                    return
                writer.write(_render(answer))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._writers.discard(writer)
            writer.transport.abort()

    async def _answer(
        self, path: str, headers: dict[str, str], body: bytes, reader: asyncio.StreamReader
    ) -> Answer | None:
        if path == "/health":
            self.checks += 1
            return Answer(self.health, b"")
        if self.key and headers.get("authorization") != f"Bearer {self.key}":
            return _json(401, {"error": "Unauthorized"})
        if path in SCORE_PATHS:
            return await self._score(path, json.loads(body), reader)
        if path == "/v1/models":
            return _json(200, {"data": self.models})
        if path == "/tokenize":
            text = json.loads(body)["prompt"]
            return _json(200, {"tokens": self.tokenizer.encode(text, add_special_tokens=False)})
        if path == {"vllm": "/version", "sglang": "/server_info"}[self.dialect]:
            return _json(200, {"version": self.version, "other": 1})
        return _json(404, {"error": "Not Found"})

    async def _score(
        self, path: str, asked: dict[str, Any], reader: asyncio.StreamReader
    ) -> Answer | None:
        self.calls.append(asked)
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            gone = asyncio.ensure_future(reader.read(1))
            started_s = asyncio.get_running_loop().time()
            await asyncio.wait({gone}, timeout=0)
            while not gone.done():
                left_s = started_s + self.delay_s - asyncio.get_running_loop().time()
                if left_s <= 0:
                    break
                await asyncio.wait({gone}, timeout=min(left_s, STEP_S))
            if gone.done():
                self.given_up += 1
                return None
            gone.cancel()
            await asyncio.gather(gone, return_exceptions=True)
        finally:
            self.running -= 1
        if self.hang_up:
            return None
        if self.refuse is not None:
            return self.refuse
        answers = {"/v1/completions": self._vllm, "/generate": self._sglang}
        told = answers.get(path, self._classes)(asked)
        return _json(200, self.spoil(told) if self.spoil else told)

    def _vllm(self, asked: dict[str, Any]) -> dict[str, Any]:
        ids = asked["logprob_token_ids"]
        choices = [
            {
                "index": index,
                "text": "token_id:7",
                "logprobs": {
                    "top_logprobs": [
                        {f"token_id:{i}": value for i, value in zip(ids, row, strict=True)}
                        | {"token_id:7": -0.5}  # what was sampled
                    ]
                },
            }
            for index, row in enumerate(self.compute(asked["prompt"], ids))
        ]
        return {"object": "text_completion", "choices": choices[::-1]}

    def _sglang(self, asked: dict[str, Any]) -> list[dict[str, Any]]:
        ids = asked["token_ids_logprob"]
        return [
            {
                "text": "x",
                "meta_info": {
                    "cached_tokens": len(prompt) - 1 if len(self.calls) > 3 else 0,
                    "output_token_ids_logprobs": [
                        [[value, i, None] for i, value in zip(ids, row, strict=True)]
                    ],
                },
            }
            for prompt, row in zip(
                asked["input_ids"], self.compute(asked["input_ids"], ids), strict=True
            )
        ]

    def _classes(self, asked: dict[str, Any]) -> Any:
        if self.dialect == "sglang":
            rows = self.classify(asked["input_ids"])
            return [{"embedding": row, "meta_info": {}} for row in rows]
        assert asked["use_activation"] is False
        rows = self.classify(asked["input"])
        return {"data": [{"index": i, "label": "x", "probs": row} for i, row in enumerate(rows)]}


def _json(status: int, body: object) -> Answer:
    return Answer(status, json.dumps(body).encode(), {"Content-Type": "application/json"})


def _render(answer: Answer) -> bytes:
    headers = {**answer.headers, "Content-Length": str(len(answer.body))}
    lines = [f"HTTP/1.1 {answer.status} x", *(f"{k}: {v}" for k, v in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode() + answer.body
