"""A model hub on loopback with one repository at one commit; it can be told to break off."""

import hashlib
import json
import struct
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Self
from urllib.parse import unquote, urlsplit

MODEL = "acme/tiny-model"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def safetensors_bytes(payload: bytes) -> bytes:
    header = json.dumps(
        {"w": {"dtype": "U8", "shape": [len(payload)], "data_offsets": [0, len(payload)]}}
    ).encode()
    return struct.pack("<Q", len(header)) + header + payload


def repository() -> dict[str, bytes]:
    index = {"weight_map": {"w": "model-1.safetensors", "v": "model-2.safetensors"}}
    return {
        "config.json": b"{}",
        "tokenizer.json": b'{"version": "1.0"}',
        "tokenizer_config.json": b"{}",
        "chat_template.jinja": b"{{ messages }}",
        "model.safetensors.index.json": json.dumps(index).encode(),
        "model-1.safetensors": safetensors_bytes(b"a" * 25_000_000),
        "model-2.safetensors": safetensors_bytes(b"b" * 200_000),
        "README.md": b"a file that no text model needs",
        "original/weights.pth": b"another one",
    }


class FakeHub:
    """Serves `files`; breaks or stalls one download of a file after so many bytes."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files
        self.cut_at: dict[str, int] = {}
        self.stall_at: dict[str, int] = {}
        self.stalled = Event()
        self.bytes_sent: dict[str, int] = {}
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_HEAD(self) -> None:
                hub._answer(self, with_body=False)

            def do_GET(self) -> None:
                hub._answer(self, with_body=True)

            def log_message(self, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, request: BaseHTTPRequestHandler, *, with_body: bool) -> None:
        path = unquote(urlsplit(request.path).path)
        if path.startswith(f"/api/models/{MODEL}/tree/{COMMIT}"):
            self._send(request, json.dumps(self._tree()).encode(), {})
            return
        name = path.removeprefix(f"/{MODEL}/resolve/{COMMIT}/")
        if name not in self.files:
            self._send(request, b"", {"X-Error-Code": "RepoNotFound"}, 404)
            return
        content = self.files[name]
        headers = {"ETag": f'"{_published_hash(name, content)}"', "X-Repo-Commit": COMMIT}
        headers["Accept-Ranges"] = "bytes"
        if not with_body:
            self._send(request, b"", headers | {"Content-Length": str(len(content))})
            return
        self._send_file(request, name, content, headers)

    def _send_file(
        self, request: BaseHTTPRequestHandler, name: str, content: bytes, headers: dict[str, str]
    ) -> None:
        asked = request.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")
        first = int(asked[0])
        body = content[first : int(asked[2]) + 1 if asked[2] else None]
        headers |= {"Content-Range": f"bytes {first}-{len(content) - 1}/{len(content)}"}
        headers |= {"Content-Length": str(len(body))}
        if name in self.cut_at:
            body = body[: self.cut_at.pop(name)]
            request.close_connection = True
        stalls = name in self.stall_at
        if stalls:
            body = body[: self.stall_at.pop(name)]
        self.bytes_sent[name] = self.bytes_sent.get(name, 0) + len(body)
        self._send(request, body, headers, 206 if first else 200)
        if stalls:
            self.stalled.set()
            request.rfile.read(1)  # until the client goes away

    def _send(
        self,
        request: BaseHTTPRequestHandler,
        body: bytes,
        headers: dict[str, str],
        status: int = 200,
    ) -> None:
        request.send_response(status)
        for name, value in ({"Content-Length": str(len(body))} | headers).items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(body)

    def _tree(self) -> list[dict[str, object]]:
        entries = []
        for name, content in self.files.items():
            entry: dict[str, object] = {"type": "file", "path": name, "size": len(content)}
            entry["oid"] = _git_hash(content)
            if name.endswith(".safetensors"):
                sha256 = hashlib.sha256(content).hexdigest()
                entry["lfs"] = {"oid": sha256, "size": len(content), "pointerSize": 134}
            entries.append(entry)
        return entries


def _published_hash(name: str, content: bytes) -> str:
    is_large = name.endswith(".safetensors")
    return hashlib.sha256(content).hexdigest() if is_large else _git_hash(content)


def _git_hash(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
