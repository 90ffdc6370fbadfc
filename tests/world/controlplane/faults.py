"""A proxy in front of the API server that misbehaves as told: slow, refusing, cutting, deadly.

It shows the API server's own certificate, so that clients notice nothing. Requests and answers pass
as they are, watches line by line.
"""

import http.client
import json
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

HOP_BY_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length", "host"})
UPSTREAM_SECONDS = 400  # longer than any watch


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it comes."""

    method: str
    path: str
    query: dict[str, list[str]]

    @property
    def watches(self) -> bool:
        """Whether it stays open."""
        return "watch" in self.query

    @property
    def writes(self) -> bool:
        """Whether it is a step of the operator's work: no Lease, no agent's report, no question."""
        aside = ("/leases", "/gpunodes", "reviews")
        return self.method != "GET" and not any(word in self.path for word in aside)

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


@dataclass(slots=True)
class Faults:
    """What goes wrong now; `refuse` gives a request's HTTP status, None lets it pass."""

    delay_seconds: float = 0.0
    refuse: Callable[[Request], int | None] = lambda request: None
    after_step: Callable[[Request], bool] = lambda request: False  # True: no answer comes back
    seen: list[Request] = field(default_factory=list)  # everything that was asked


class FaultyServer:
    """The API server behind a proxy; `url` is where clients go."""

    def __init__(self, upstream: str, certificates: Path) -> None:
        self.faults = Faults()
        self._upstream = urlsplit(upstream)
        self._trusted = ssl.create_default_context(cafile=str(certificates / "apiserver.crt"))
        self._streams: set[Any] = set()
        self._lock = threading.Lock()
        self._versions: dict[str, str] = {}  # path → resource version after the last write
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates / "apiserver.crt", certificates / "apiserver.key")
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None:
                """Nobody reads it."""

            def handle_one_request(self) -> None:
                try:
                    super().handle_one_request()
                except (OSError, http.client.HTTPException):
                    self.close_connection = True

            def do_GET(self) -> None:
                proxy.pass_on(self)

            do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815  # names of http.server

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def get_request(self) -> Any:
                sock, address = super().get_request()
                sock.settimeout(UPSTREAM_SECONDS)
                # The handshake is left to the connection's own thread: a slow client stops nobody.
                return context.wrap_socket(
                    sock, server_side=True, do_handshake_on_connect=False
                ), address

            def handle_error(self, request: Any, client_address: Any) -> None:
                """Clients that die are what this is for."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        self.url = f"https://127.0.0.1:{self.port}"

    def start(self) -> Self:
        """Clients are let in."""
        threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True).start()
        return self

    def stop(self) -> None:
        """Nobody is."""
        self._server.shutdown()
        self.cut_watches()
        self._server.server_close()

    def well(self) -> None:
        """Nothing goes wrong any more."""
        self.faults = Faults()

    def cut_watches(self) -> int:
        """All open watches end in the middle of a line; how many there were."""
        with self._lock:
            streams, self._streams = self._streams, set()
        for handler in streams:
            handler.close_connection = True
            try:
                handler.connection.close()
            except OSError:
                continue
        return len(streams)

    def pass_on(self, handler: BaseHTTPRequestHandler) -> None:
        """One request, there and back, unless a fault is in its way."""
        parts = urlsplit(handler.path)
        request = Request(handler.command, parts.path, parse_qs(parts.query))
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        faults = self.faults
        faults.seen.append(request)
        if faults.delay_seconds and not request.watches:
            time.sleep(faults.delay_seconds)
        status = faults.refuse(request)
        if status is not None:
            self._answer(handler, status)
            return
        headers = {k: v for k, v in handler.headers.items() if k.lower() not in HOP_BY_HOP}
        upstream = http.client.HTTPSConnection(
            self._upstream.hostname or "",
            self._upstream.port,
            timeout=UPSTREAM_SECONDS,
            context=self._trusted,
        )
        try:
            upstream.request(request.method, handler.path, body or None, headers)
            response = upstream.getresponse()
            if request.watches and response.status == 200:
                self._stream(handler, response)
                return
            data = response.read()
            if self._is_step(request, data) and faults.after_step(request):
                handler.close_connection = True
                return
            handler.send_response(response.status)
            for name, value in response.getheaders():
                if name.lower() not in HOP_BY_HOP:
                    handler.send_header(name, value)
            handler.send_header("Content-Length", str(len(data)))
            handler.end_headers()
            handler.wfile.write(data)
        except ConnectionRefusedError:  # the API server itself is away
            handler.close_connection = True
        finally:
            upstream.close()

    def _is_step(self, request: Request, data: bytes) -> bool:
        """Whether it changed an object: applying what is there already leaves its version."""
        if not request.writes:
            return False
        try:
            version = json.loads(data)["metadata"].get("resourceVersion", "")
        except (ValueError, KeyError):
            version = ""
        with self._lock:
            before = self._versions.get(request.path)
            self._versions[request.path] = version
        return not version or version != before

    def _stream(self, handler: BaseHTTPRequestHandler, response: http.client.HTTPResponse) -> None:
        with self._lock:
            self._streams.add(handler)
        try:
            handler.send_response(200)
            handler.send_header("Content-Type", "application/json")
            handler.send_header("Transfer-Encoding", "chunked")
            handler.end_headers()
            while line := response.readline():
                handler.wfile.write(b"%x\r\n%b\r\n" % (len(line), line))
                handler.wfile.flush()
            handler.wfile.write(b"0\r\n\r\n")
        finally:
            with self._lock:
                self._streams.discard(handler)

    @staticmethod
    def _answer(handler: BaseHTTPRequestHandler, status: int) -> None:
        reasons = {409: "Conflict", 410: "Expired", 429: "TooManyRequests", 500: "InternalError"}
        body = {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "message": f"staged: {status}",
            "reason": reasons.get(status, "Unknown"),
            "code": status,
        }
        data = json.dumps(body).encode()
        handler.send_response(status)
        handler.send_header("Content-Type", "application/json")
        if status == 429:
            handler.send_header("Retry-After", "1")
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)
