"""Whether the agent is well, for the kubelet's probes: /readyz and /healthz."""

import socket
import socketserver
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

READY_WITHIN_SECONDS = 120  # a pass that old says nothing about the node any more
ALIVE_WITHIN_SECONDS = 300  # longer than any back-off: the loop hangs, as in a stuck driver call


class Readiness:
    """When the last pass over the driver and the last round of the loop succeeded."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._passed_at: float | None = None
        self._round_at = monotonic()
        self._trouble = "no pass over the driver yet"

    def passed(self) -> None:
        """The driver answered and what it said is written."""
        self._passed_at, self._trouble = self._monotonic(), ""

    def failed(self, trouble: str) -> None:
        """Why there is no success now."""
        self._trouble = trouble

    def round(self) -> None:
        """The loop goes on."""
        self._round_at = self._monotonic()

    def is_ready(self) -> bool:
        """Whether a pass succeeded lately."""
        passed_at = self._passed_at
        return passed_at is not None and self._monotonic() - passed_at < READY_WITHIN_SECONDS

    def is_alive(self) -> bool:
        """Whether the loop goes on."""
        return self._monotonic() - self._round_at < ALIVE_WITHIN_SECONDS

    def serve(self, address: str, port: int) -> ThreadingHTTPServer:
        """Answer probes in a thread of its own until the server is shut down."""
        server = _server(address, port, _handler(self))
        threading.Thread(target=server.serve_forever, daemon=True, name="probes").start()
        return server

    def answer(self, path: str) -> tuple[int, str]:
        """Status and text of a probe."""
        if path == "/healthz":
            return (200, "ok") if self.is_alive() else (503, "the loop hangs")
        if path == "/readyz":
            return (200, "ok") if self.is_ready() else (503, self._trouble or "no recent pass")
        return 404, "/readyz or /healthz"


class _ProbeServer(ThreadingHTTPServer):
    daemon_threads = True

    def server_bind(self) -> None:
        """Without the name look-up of HTTPServer, which may hang for seconds in a pod."""
        socketserver.TCPServer.server_bind(self)


class _ProbeServerV6(_ProbeServer):
    address_family = socket.AF_INET6


def _server(address: str, port: int, handler: type[BaseHTTPRequestHandler]) -> ThreadingHTTPServer:
    """On the given address; without one on all, of both families where the kernel has both."""
    if ":" in address:
        return _ProbeServerV6((address, port), handler)
    if not address and socket.has_dualstack_ipv6():
        return _ProbeServerV6(("::", port), handler)
    return _ProbeServer((address, port), handler)


def _handler(readiness: Readiness) -> type[BaseHTTPRequestHandler]:
    class Probe(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, text = readiness.answer(self.path)
            body = f"{text}\n".encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/plain; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Probes every few seconds are no news."""

    return Probe
