"""The kubelet's HTTPS port, one for all nodes, serves logs; self-signed is good enough for it."""

import contextlib
import http.server
import select
import ssl
import subprocess
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterable
from http import HTTPStatus
from pathlib import Path

from world.nodes.logs import LogRequest

# (namespace, pod, container, previous, request) → the bytes, or LookupError with what is wrong
OpenLog = Callable[[str, str, str, bool, LogRequest], Iterable[bytes]]
HANDSHAKE_SECONDS = 10


def parse_log_path(target: str) -> tuple[str, str, str, bool, LogRequest]:
    """What /containerLogs/NAMESPACE/POD/CONTAINER?… asks for; ValueError for other paths."""
    url = urllib.parse.urlsplit(target)
    _, kind, namespace, pod, container = url.path.split("/")
    if kind != "containerLogs":
        raise ValueError(target)
    query = dict(urllib.parse.parse_qsl(url.query))

    def is_on(name: str) -> bool:
        return query.get(name, "").lower() in ("true", "1")

    since = None
    if "sinceSeconds" in query:
        since = time.time() - int(query["sinceSeconds"])
    request = LogRequest(
        tail_lines=int(query["tailLines"]) if "tailLines" in query else None,
        since_seconds=since,
        limit_bytes=int(query["limitBytes"]) if "limitBytes" in query else None,
        timestamps=is_on("timestamps"),
        follow=is_on("follow"),
    )
    return namespace, pod, container, is_on("previous"), request


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """A self-signed certificate and its key."""
    certificate, key = folder / "kubelet.crt", folder / "kubelet.key"
    kind = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj /CN=kubelet"
    files = ["-keyout", str(key), "-out", str(certificate)]
    command = ["openssl", "req", "-x509", *kind.split(), *files]
    subprocess.run(command, check=True, capture_output=True)
    return certificate, key


class KubeletServer(http.server.ThreadingHTTPServer):
    """Serves until stopped; the handshake happens in the connection's own thread."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, folder: Path, open_log: OpenLog) -> None:
        super().__init__(("127.0.0.1", 0), LogHandler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*make_certificate(folder))
        self.socket = context.wrap_socket(
            self.socket, server_side=True, do_handshake_on_connect=False
        )
        self.open_log = open_log
        self._thread = threading.Thread(target=self.serve_forever, name="kubelet", daemon=True)

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def start(self) -> None:
        """Serve in the background."""
        self._thread.start()

    def stop(self) -> None:
        """End and close."""
        self.shutdown()
        self.server_close()
        self._thread.join()


class LogHandler(http.server.BaseHTTPRequestHandler):
    """Answers /containerLogs/NAMESPACE/POD/CONTAINER."""

    server: KubeletServer
    protocol_version = "HTTP/1.1"
    timeout = HANDSHAKE_SECONDS

    def handle(self) -> None:
        with contextlib.suppress(OSError):  # whoever asked has gone
            super().handle()

    def do_GET(self) -> None:
        try:
            asked = parse_log_path(self.path)
        except ValueError:
            self.send_error(HTTPStatus.NOT_FOUND, "only /containerLogs is served here")
            return
        try:
            parts = iter(self.server.open_log(*asked))
            first = next(parts, b"")
        except (LookupError, OSError) as error:
            self.send_error(HTTPStatus.BAD_REQUEST, str(error.args[0] if error.args else error))
            return
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self._send(first)
        for part in parts:
            if not part and self._is_alone():
                break
            self._send(part)
        self.wfile.write(b"0\r\n\r\n")

    def _send(self, data: bytes) -> None:
        if data:  # an empty chunk would be the end
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def _is_alone(self) -> bool:
        """Nobody sends a second request here, so what can be read is the other side's end."""
        readable, _, _ = select.select([self.connection], [], [], 0)
        return bool(readable)

    def log_message(self, *_: object) -> None:
        """Requests are not worth a line."""
