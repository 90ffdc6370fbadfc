"""The cluster network as a forward HTTP proxy, which pods find through HTTP_PROXY.

One request per connection: the head is read and sent on with a changed target, the rest is bytes.
"""

import contextlib
import logging
import socket
import socketserver
import threading
import urllib.parse

from world.nodes.endpoints import NoEndpointError, Services

LOG = logging.getLogger("world.nodes")
HEAD_BYTES = 65_536
DIAL_SECONDS = 5
HOP_BY_HOP = (b"connection:", b"proxy-connection:", b"keep-alive:")


class BadRequestError(Exception):
    """Not a request for a proxy."""


def target_of(head: bytes) -> tuple[str, str, int, bytes]:
    """(method, host, port, the head to send on) of a proxy request's head.

    >>> target_of(b"GET http://a.b.svc:81/x?y HTTP/1.1\\r\\n\\r\\n")
    ('GET', 'a.b.svc', 81, b'GET /x?y HTTP/1.1\\r\\nConnection: close\\r\\n\\r\\n')
    """
    line, *headers = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    try:
        method, target, version = line.decode("latin-1").split(" ")
        if method == "CONNECT":
            name, _, port = target.rpartition(":")
            return method, name.strip("[]"), int(port), b""
        url = urllib.parse.urlsplit(target)
        host, number = url.hostname, url.port or 80
    except ValueError as error:
        raise BadRequestError(f"not understood: {line[:200]!r}") from error
    if url.scheme != "http" or not host:
        raise BadRequestError(f"a proxy wants a whole http:// address, got {target[:200]!r}")
    path = urllib.parse.urlunsplit(("", "", url.path or "/", url.query, ""))
    kept = [header for header in headers if not header.lower().startswith(HOP_BY_HOP)]
    first = f"{method} {path} {version}".encode("latin-1")
    return method, host, number, b"\r\n".join([first, *kept, b"Connection: close", b"", b""])


class Proxy(socketserver.ThreadingTCPServer):
    """Listens on the loopback; each connection has a thread while it lasts."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, services: Services) -> None:
        super().__init__(("127.0.0.1", 0), Exchange)
        self.services = services
        self._thread = threading.Thread(target=self.serve_forever, name="proxy", daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def start(self) -> None:
        """Serve in the background."""
        self._thread.start()

    def stop(self) -> None:
        """End and close; exchanges under way end with their connections."""
        self.shutdown()
        self.server_close()
        self._thread.join()


class Exchange(socketserver.BaseRequestHandler):
    """One request through the proxy."""

    server: Proxy
    request: socket.socket

    def handle(self) -> None:
        with contextlib.suppress(OSError):
            self._exchange()

    def _exchange(self) -> None:
        head, rest = self._read_head()
        if not head:
            return
        try:
            method, host, port, onward = target_of(head)
            address = self.server.services.locate(host, port)
            upstream = socket.create_connection(address, DIAL_SECONDS)
        except BadRequestError as error:
            self._refuse("400 Bad Request", str(error))
        except NoEndpointError as error:
            self._refuse("503 Service Unavailable", str(error))
        except OSError as error:
            self._refuse("502 Bad Gateway", f"{host}:{port}: {error}")
        else:
            with upstream:
                self._join(upstream, onward + rest, is_tunnel=method == "CONNECT")

    def _join(self, upstream: socket.socket, first: bytes, *, is_tunnel: bool) -> None:
        upstream.settimeout(None)
        if is_tunnel:
            self.request.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        upstream.sendall(first)
        sending = threading.Thread(target=copy, args=(self.request, upstream), daemon=True)
        sending.start()
        copy(upstream, self.request)
        with contextlib.suppress(OSError):
            self.request.shutdown(socket.SHUT_RDWR)
        sending.join()

    def _read_head(self) -> tuple[bytes, bytes]:
        data = b""
        while b"\r\n\r\n" not in data and len(data) < HEAD_BYTES:
            more = self.request.recv(8192)
            if not more:
                return b"", b""
            data += more
        head, mark, rest = data.partition(b"\r\n\r\n")
        return head + mark, rest

    def _refuse(self, status: str, why: str) -> None:
        body = f"node emulator's proxy: {why}\n".encode()
        self.request.sendall(
            f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n"
            "Connection: close\r\n\r\n".encode()
            + body
        )


def copy(source: socket.socket, sink: socket.socket) -> None:
    """Bytes from one to the other until the end, which is passed on."""
    with contextlib.suppress(OSError):
        while data := source.recv(65_536):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
