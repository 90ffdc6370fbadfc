"""The started engine's HTTP side: health, models, metrics, canned answers; stops on SIGTERM.

`POST /_stub` is for tests: `{"running": 5, "waiting": 2, "preemptions": 3, "healthy": false,
"die": "oom"}`.
"""

import json
import os
import signal
import sys
import threading
import time
from dataclasses import fields
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from world.engine.metrics import Load, exposition
from world.engine.start import Started
from world.engine.versions import version_text

ANSWER = ["It", " fits", "."]


class EngineServer(ThreadingHTTPServer):
    """One engine; `ended` is set when it has to stop, with the reason to die where there is one."""

    daemon_threads = True

    def __init__(
        self, address: tuple[str, int], started: Started, load: Load, *, serving_bytes: int = 0
    ) -> None:
        super().__init__(address, EngineHandler)
        self.dies_of_load = serving_bytes > max(0, started.left_bytes)
        self.started = started
        self.load = load
        self.healthy = True
        self.death: str | None = None
        self.ended = threading.Event()
        self.lock = threading.Lock()
        self.keys = _api_keys(started)

    def lose_rank(self) -> None:
        """A node of the group is gone: the engine cannot go on without it."""
        self.death = "lost"
        self.ended.set()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is no error of the engine."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def serve_until_ended(self, die_after_seconds: float | None) -> str | None:
        """Serve; returns why it died, None after SIGTERM."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.ended.set())
        thread = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        if not self.ended.wait(die_after_seconds):
            self.death = "crash"
        self.shutdown()
        self._drain()
        self.server_close()
        return self.death

    def _drain(self) -> None:
        """Answers under way are finished, as far as half a second allows."""
        deadline = time.monotonic() + 0.5
        while self.death is None and time.monotonic() < deadline:
            with self.lock:
                if self.load.running <= 0:
                    return
            time.sleep(0.01)


def _api_keys(started: Started) -> set[str]:
    given = started.given.get("api_key") or os.environ.get("VLLM_API_KEY")
    return {given} if given else set()


class EngineHandler(BaseHTTPRequestHandler):
    """The routes."""

    protocol_version = "HTTP/1.1"
    server_version = "uvicorn"
    server: EngineServer

    def log_message(self, *_: Any) -> None:
        """No access log: probes would fill it."""

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if path in ("/health", "/ping"):
            self._text(200 if self.server.healthy else 503, "")
        elif path == "/metrics":
            kind = "text/plain; version=1.0.0; charset=utf-8"
            self._text(200, exposition(self.server.started, self.server.load), kind)
        elif path == "/version":
            self._json(200, {"version": version_text(self.server.started.settings.version)})
        elif path == "/load":
            self._json(200, {"server_load": self.server.load.running})
        elif path == "/v1/models":
            if self._is_allowed():
                self._json(200, self._models())
        else:
            self._json(404, {"detail": "Not Found"})

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        try:
            body = json.loads(self.rfile.read(length) or b"{}")
        except ValueError:
            self._error(400, "JSON decode error", "Bad Request")
            return
        path = urlsplit(self.path).path
        if path == "/_stub":
            self._control(body)
        elif path in ("/v1/completions", "/v1/chat/completions"):
            if self._is_allowed():
                self._complete(body, chat=path.endswith("chat/completions"))
        else:
            self._json(404, {"detail": "Not Found"})

    def _is_allowed(self) -> bool:
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        if self.server.keys and token not in self.server.keys:
            self._json(401, {"error": "Unauthorized"})
            return False
        return True

    def _models(self) -> dict[str, Any]:
        started = self.server.started
        data = [
            {
                "id": name,
                "object": "model",
                "created": 1_760_000_000,
                "owned_by": "vllm",
                "root": started.settings.model,
                "parent": None,
                "max_model_len": started.plan.length,
            }
            for name in started.settings.served_names
        ]
        return {"object": "list", "data": data}

    def _control(self, body: dict[str, Any]) -> None:
        known = {field.name for field in fields(Load)}
        if unknown := set(body) - known - {"healthy", "die"}:
            self._json(400, {"error": f"no such thing: {sorted(unknown)}"})
            return
        for name in known & set(body):
            setattr(self.server.load, name, body[name])
        self.server.healthy = body.get("healthy", self.server.healthy)
        self._json(200, vars(self.server.load))
        if "die" in body:
            self.server.death = str(body["die"])
            self.server.ended.set()

    def _complete(self, body: dict[str, Any], *, chat: bool) -> None:
        started = self.server.started
        if body.get("model", started.settings.served_names[0]) not in started.settings.served_names:
            self._error(404, f"The model `{body['model']}` does not exist.", "NotFoundError")
            return
        said = body.get("messages") if chat else body.get("prompt")
        prompt_tokens = max(1, len(json.dumps(said)) // 4)
        longest = started.plan.length
        if prompt_tokens >= longest:
            self._error(
                400,
                f"This model's maximum context length is {longest} tokens. However, your prompt "
                f"contains at least {prompt_tokens} input tokens.",
                "BadRequestError",
            )
            return
        with self.server.lock:
            self.server.load.running += 1
            if self.server.dies_of_load and self.server.load.running > 1:
                self.server.death = "oom"
                self.server.ended.set()
        try:
            self._answer(body, chat=chat, prompt_tokens=prompt_tokens)
        finally:
            with self.server.lock:
                self.server.load.running -= 1
                self.server.load.requests += 1
                self.server.load.prompt_tokens += prompt_tokens
                self.server.load.generated_tokens += len(ANSWER)

    def _answer(self, body: dict[str, Any], *, chat: bool, prompt_tokens: int) -> None:
        if body.get("stream"):
            self._stream(body, chat=chat)
            return
        text = "".join(ANSWER)
        choice = self._choice({"role": "assistant", "content": text} if chat else text, chat)
        usage = {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": len(ANSWER),
            "total_tokens": prompt_tokens + len(ANSWER),
        }
        document = self._document(body, chat=chat, chunk=False) | {
            "choices": [choice | {"finish_reason": "stop"}],
            "usage": usage,
        }
        self._json(200, document)

    def _choice(self, said: Any, chat: bool, key: str = "message") -> dict[str, Any]:
        return {"index": 0, (key if chat else "text"): said, "logprobs": None}

    def _document(self, body: dict[str, Any], *, chat: bool, chunk: bool) -> dict[str, Any]:
        kind = "chat.completion" if chat else "text_completion"
        return {
            "id": "chatcmpl-stub" if chat else "cmpl-stub",
            "object": kind + (".chunk" if chunk and chat else ""),
            "created": 1_760_000_000,
            "model": body.get("model", self.server.started.settings.served_names[0]),
        }

    def _stream(self, body: dict[str, Any], *, chat: bool) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Connection", "close")
        self.end_headers()
        for piece in ANSWER:
            choice = self._choice({"content": piece} if chat else piece, chat, "delta")
            document = self._document(body, chat=chat, chunk=True) | {"choices": [choice]}
            self.wfile.write(f"data: {json.dumps(document)}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def _error(self, status: int, message: str, kind: str) -> None:
        self._json(
            status, {"error": {"message": message, "type": kind, "param": None, "code": status}}
        )

    def _json(self, status: int, content: Any) -> None:
        self._text(status, json.dumps(content), "application/json")

    def _text(self, status: int, content: str, kind: str = "text/plain") -> None:
        body = content.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
