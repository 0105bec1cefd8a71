"""A service on loopback that answers as a real one does and changes as a test tells it."""

import json
import threading
from dataclasses import asdict, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from samples import MODEL, ToldScorer

from semif_bento.decisions import Decision, Option, ScoreRequest, Scores

TOKEN = "t" * 40
LIMITS = {
    "max_tokens": 600,
    "max_decisions": 24,
    "vram_cap_gib": 0.0,
    "engines": ["letters", "nli"],
}


class Stub:
    """`model` answers; after `changes_after` decisions another revision does. `refusals` are
    statuses given before anything is answered."""

    def __init__(self) -> None:
        self.scorer = ToldScorer()
        self.model = MODEL
        self.changes_after: int | None = None
        self.refusals: list[int] = []
        self.asked = 0
        stub = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, format: str, *args: object) -> None:
                pass

            def do_GET(self) -> None:
                self._send(200, {**LIMITS, **asdict(stub.scorer.status())})

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if self.headers["Authorization"] != f"Bearer {TOKEN}":
                    self._send(401, _error("The token is wrong."))
                elif stub.refusals:
                    self._send(stub.refusals.pop(0), _error("Not now."))
                else:
                    self._send(200, stub.answer(self.path, body))

            def _send(self, status: int, value: Any) -> None:
                content = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.send_header("Retry-After", "0")
                self.end_headers()
                self.wfile.write(content)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self.asked += 1
        if self.changes_after is not None and self.asked > self.changes_after:
            self.model = replace(MODEL, revision="r2")
        if path == "/decide":
            outcome = self.scorer.direct(ScoreRequest(body["state"], (_decision(body),)))
            times = {"forward_seconds": 0.1, "total_seconds": 0.2}
            return {**_result(outcome.scores), **times, "model": asdict(self.model)}
        decisions = tuple(map(_decision, body["decisions"]))
        shared = self.scorer.shared(ScoreRequest(body["state"], decisions))
        model = {**asdict(self.model), "serving_config": shared.serving_config}
        results = [{**_result(scores), "model": model} for scores in shared.scores]
        return {"results": results, "timing": asdict(shared.timing)}


def _decision(body: dict[str, Any]) -> Decision:
    options = tuple(Option(**option) for option in body["options"])
    return Decision(body["id"], body["question"], options)


def _result(scores: Scores) -> dict[str, Any]:
    value = asdict(scores)
    return {"id": value.pop("decision_id"), "prompt_version": "direct-options-v1", **value}


def _error(message: str) -> dict[str, Any]:
    return {"error": {"code": "x", "message": message}}
