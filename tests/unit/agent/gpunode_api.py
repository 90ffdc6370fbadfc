"""An API server for one GPUNode in memory over real HTTP, with the faults a real one may have."""

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

NODE_UID = "5b1f0000-0000-4000-8000-00000000000a"
PATH = "/apis/shipfitter.dev/v1alpha1/gpunodes/n1"


def bound_token(node: str = "n1", uid: str = NODE_UID, serial: int = 1) -> str:
    """A token as the API server binds it to a pod; its signature is nobody's."""
    claims = {"jti": str(serial), "kubernetes.io": {"node": {"name": node, "uid": uid}}}
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    return f"e30.{payload}.c2ln"


def kubeconfig(folder: Path, server: str, token: str) -> Path:
    """A kubeconfig whose token lies in a file beside it."""
    (folder / "token").write_text(token)
    config = {
        "current-context": "agent",
        "contexts": [{"name": "agent", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {"tokenFile": "token"}}],
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


class GpuNodeApi:
    """What was asked, and the object as it is now."""

    def __init__(self) -> None:
        self.url = ""
        self.stored: dict[str, Any] | None = None
        self.writes: list[dict[str, Any]] = []  # applied bodies, in order
        self.queries: list[str] = []
        self.accepted: str | None = None  # a token; None: any
        self.refusals: list[tuple[int, dict[str, str]]] = []  # status and headers, one a request
        self.changed = threading.Condition()

    def status_writes(self) -> list[dict[str, Any]]:
        """The statuses applied so far."""
        return [body["status"] for body in self.writes if "status" in body]

    def wait_for(self, predicate: Any, timeout_seconds: float = 30) -> None:
        """Until the predicate holds after a request; fails at the deadline."""
        with self.changed:
            assert self.changed.wait_for(predicate, timeout_seconds), self.writes

    def answer(self, handler: BaseHTTPRequestHandler) -> tuple[int, dict[str, Any], dict[str, str]]:
        length = int(handler.headers.get("Content-Length", 0))
        body = json.loads(handler.rfile.read(length)) if length else {}
        path, _, query = handler.path.partition("?")
        if self.refusals:
            status, headers = self.refusals.pop(0)
            return status, {"message": "refused by the test"}, headers
        if self.accepted and handler.headers.get("Authorization") != f"Bearer {self.accepted}":
            return 401, {"message": "Unauthorized"}, {}
        if handler.command == "GET" or path.endswith("/status"):
            if self.stored is None:
                return 404, {"message": 'gpunodes "n1" not found'}, {}
            if handler.command == "GET":
                return 200, self.stored, {}
        self.queries.append(query)
        self.writes.append(body)
        metadata = (self.stored or {}).get("metadata", {}) | body["metadata"]
        self.stored = (self.stored or {}) | body | {"metadata": metadata}
        return 200, self.stored, {}

    @contextmanager
    def running(self) -> Iterator["GpuNodeApi"]:
        """The server on a free port."""
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                with api.changed:
                    status, body, headers = api.answer(self)
                    api.changed.notify_all()
                content = json.dumps(body).encode()
                self.send_response(status)
                for name, value in ({"Content-Length": str(len(content))} | headers).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            do_PATCH = do_GET  # noqa: N815

            def log_message(self, *_):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads, server.block_on_close = True, False
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        self.url = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
            thread.join()
