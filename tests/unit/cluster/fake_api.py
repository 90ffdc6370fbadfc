"""An API server in memory over real HTTP, for the faults a real one cannot be asked for."""

import json
import re
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from kubernetes.client import Configuration

from shipfitter.cluster.client import Client
from unit.cluster.fake_objects import Body, FakeObjects, RefusedError

PATH = re.compile(
    r"^/(?:api/[^/]+|apis/[^/]+/[^/]+)(?:/namespaces/(?P<namespace>[^/]+))?"
    r"/(?P<plural>[^/]+)(?:/(?P<name>[^/]+))?(?:/(?P<subresource>status|scale))?$"
)


class FakeApi(FakeObjects):
    """The server; `url` while inside `running`."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[tuple[str, str, dict[str, str], Any]] = []
        self.tokens: set[str] | None = None  # accepted ones; None: all
        self.silent = False  # watches stay open and say nothing
        self._faults: list[tuple[str, re.Pattern[str], RefusedError | None]] = []
        self._streams = 0  # raised to end every open watch

    @contextmanager
    def running(self):
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            api = self

            def any_method(self):
                self.api.answer(self)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = any_method  # noqa: N815

            def log_message(self, *_):
                pass

        class Server(ThreadingHTTPServer):
            def handle_error(self, *_):
                """Clients that go away are the point of these tests."""

        server = Server(("127.0.0.1", 0), Handler)
        server.daemon_threads, server.block_on_close = True, False
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        self.url = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield self
        finally:
            self.drop_watches()
            server.shutdown()
            server.server_close()
            thread.join()

    def refuse(self, method: str, path: str, *refusals: RefusedError) -> None:
        """The next requests that match are refused, one by one."""
        self._faults += [(method, re.compile(path), each) for each in refusals]

    def break_off(self, method: str, path: str) -> None:
        """The next request that matches finds its connection closed."""
        self._faults.append((method, re.compile(path), None))

    def drop_watches(self) -> None:
        with self.lock:
            self._streams += 1
            self.lock.notify_all()

    def sent(self, method: str, path: str = "") -> list[Any]:
        """Bodies of the requests so far whose path holds this."""
        with self.lock:
            return [body for each, at, _, body in self.requests if each == method and path in at]

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(handler.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        length = int(handler.headers.get("Content-Length") or 0)
        body = json.loads(handler.rfile.read(length)) if length else None
        with self.lock:
            # A copy: what is stored of it changes with its life.
            copy = json.loads(json.dumps(body))
            self.requests.append((handler.command, parts.path, query, copy))
        try:
            if not self._fails(handler):
                self._check_token(handler.headers.get("Authorization", ""))
                if query.get("watch") == "true":
                    self._watch(handler, parts.path, query)
                    return
                with self.lock:
                    _send(handler, 200, self._do(handler, parts.path, query, body))
        except RefusedError as refused:
            _send(handler, refused.code, refused.body, refused.retry_after)
        except (BrokenPipeError, ConnectionResetError):
            handler.close_connection = True

    def _fails(self, handler: BaseHTTPRequestHandler) -> bool:
        with self.lock:
            matching = [
                fault
                for fault in self._faults
                if fault[0] == handler.command and fault[1].search(handler.path)
            ]
            if not matching:
                return False
            self._faults.remove(matching[0])
        refused = matching[0][2]
        if refused is not None:
            raise refused
        handler.close_connection = True
        return True

    def _check_token(self, header: str) -> None:
        if self.tokens is not None and header.removeprefix("Bearer ") not in self.tokens:
            raise RefusedError(401, "Unauthorized")

    def _do(self, handler, path: str, query: dict[str, str], body: Any) -> Body:
        method, content_type = handler.command, handler.headers.get("Content-Type", "")
        plural, namespace, name = place(path)
        if method == "GET" and not name:
            return self.list(plural, namespace, query)
        if method == "POST":
            return self.create(plural, namespace, body)
        if method == "PATCH" and content_type.startswith("application/apply-patch"):
            return self.apply(plural, namespace, name, body)
        live = self.get(plural, name, namespace)
        if live is None:
            raise RefusedError(404, "NotFound", f"{plural} {name!r} not found")
        change = {"PUT": self.replace, "PATCH": self.patch, "DELETE": self.delete}.get(method)
        return change(plural, live, body) if change else live

    def _watch(self, handler, path: str, query: dict[str, str]) -> None:
        plural, namespace, _ = place(path)
        position = int(query["resourceVersion"])
        if position < self.compacted:
            raise RefusedError(410, "Expired", "too old resource version")
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        stream, ends = self._streams, time.monotonic() + float(query.get("timeoutSeconds", 300))
        while time.monotonic() < ends and stream == self._streams:
            with self.lock:
                news = self.news(plural, namespace, query, position)
                if not news or self.silent:
                    self.lock.wait(0.2)
                    continue
            position = news[-1][0]
            for _, line in news:
                if line:
                    handler.wfile.write(b"%x\r\n%s\n\r\n" % (len(line) + 1, line.encode()))
        handler.wfile.write(b"0\r\n\r\n")


def _send(handler, code: int, body: Any, retry_after: int | None = None) -> None:
    data = json.dumps(body).encode()
    handler.send_response(code)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(data)))
    if retry_after is not None:
        handler.send_header("Retry-After", str(retry_after))
    handler.end_headers()
    handler.wfile.write(data)


def place(path: str) -> tuple[str, ...]:
    """Plural, namespace and name of a path."""
    match = PATH.match(path)
    assert match, f"a path the fake does not know: {path}"
    return tuple(match[part] or "" for part in ("plural", "namespace", "name"))


def client_of(api: FakeApi, token: Callable[[], str] = lambda: "") -> Client:
    def load() -> Configuration:
        configuration = Configuration(host=api.url)
        configuration.retries = False
        configuration.connection_pool_maxsize = 16
        if token():
            configuration.api_key["BearerToken"] = f"Bearer {token()}"
        return configuration

    return Client(load)


def eventually(check: Callable[[], object], *, within_seconds: float = 10.0) -> None:
    deadline = time.monotonic() + within_seconds
    while not check():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.01)
