"""`/healthz`: the process turns and its watches live. `/readyz`: it has seen all and may act."""

import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Check = Callable[[], str]  # what is wrong; empty where all is well


class HealthServer:
    """A small HTTP server on a thread of its own; it answers even when everything else hangs."""

    def __init__(self, host: str, port: int, *, healthy: Check, ready: Check) -> None:
        checks = {"/healthz": healthy, "/livez": healthy, "/readyz": ready}

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:  # the name http.server calls
                check = checks.get(self.path.partition("?")[0])
                wrong = check() if check else "no such page; there are /healthz and /readyz"
                body = f"{wrong or 'ok'}\n".encode()
                self.send_response(404 if check is None else 503 if wrong else 200)
                self.send_header("Content-Type", "text/plain; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # its own name
                """Probes come every few seconds; they are no news."""

        class Server(ThreadingHTTPServer):
            address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
            daemon_threads = True

        self._server = Server((host, port), Handler)
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="health", daemon=True
        )

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._server.server_address[1])

    def start(self) -> None:
        """It answers."""
        self._thread.start()

    def stop(self) -> None:
        """The port is free again."""
        if self._thread.is_alive():
            self._server.shutdown()
        self._server.server_close()
