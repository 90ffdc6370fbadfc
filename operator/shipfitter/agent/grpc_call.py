"""One gRPC call over a unix socket: HTTP/2 by the h2 library, and what gRPC adds to a unary call.

Source: gRPC's "gRPC over HTTP2" (a five-byte prefix before each message, status in the trailers).
"""

import socket
from pathlib import Path

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ConnectionTerminated, DataReceived, ResponseReceived, StreamEnded, StreamReset
from h2.events import TrailersReceived as Trailers
from h2.exceptions import ProtocolError

TIMEOUT_SECONDS = 5
# Source: kubelet's own limit for answers of this service, apis/podresources/constants.go.
MOST_BYTES = 16 * 1024**2
_STREAM = 1  # the first that a client may open


class CallError(Exception):
    """No answer, or one that is none."""


def unary_call(path: Path, method: str, request: bytes = b"") -> bytes:
    """The answer's message. Raises CallError."""
    connection = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as wire:
            wire.settimeout(TIMEOUT_SECONDS)
            wire.connect(str(path))
            _ask(connection, method, request)
            wire.sendall(connection.data_to_send())
            return _message(_answer(connection, wire))
    except (OSError, ProtocolError) as error:
        raise CallError(f"{path}: {error or type(error).__name__}") from None


def _ask(connection: H2Connection, method: str, request: bytes) -> None:
    connection.initiate_connection()
    connection.send_headers(
        _STREAM,
        [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", method),
            (":authority", "localhost"),
            ("te", "trailers"),
            ("content-type", "application/grpc"),
            ("user-agent", "shipfitter-agent"),
        ],
    )
    connection.send_data(_STREAM, b"\0" + len(request).to_bytes(4) + request, end_stream=True)


def _answer(connection: H2Connection, wire: socket.socket) -> bytes:
    """All data of the answer, once its trailers say that it is whole."""
    body, headers = b"", dict[str, str]()
    while True:
        received = wire.recv(65536)
        if not received:
            raise CallError("the connection was closed before the answer ended")
        for event in connection.receive_data(received):
            match event:
                case ResponseReceived() | Trailers():
                    headers |= {str(name): str(value) for name, value in event.headers}
                case DataReceived():
                    body += event.data
                    connection.acknowledge_received_data(event.flow_controlled_length, _STREAM)
                case StreamEnded():
                    _check(headers)
                    return body
                case StreamReset() | ConnectionTerminated():
                    raise CallError(f"the call was refused (code {event.error_code})")
        if len(body) > MOST_BYTES:
            raise CallError(f"the answer is longer than {MOST_BYTES} bytes")
        wire.sendall(connection.data_to_send())


def _check(headers: dict[str, str]) -> None:
    status = headers.get("grpc-status", "")
    if headers.get(":status") != "200" or status != "0":
        told = headers.get("grpc-message") or f"HTTP {headers.get(':status')}"
        raise CallError(f"gRPC status {status or 'missing'}: {told}")


def _message(body: bytes) -> bytes:
    """The one message of the answer; we did not ask for compression."""
    length = int.from_bytes(body[1:5])
    if len(body) != 5 + length or body[0]:
        raise CallError("the answer is not one plain message")
    return body[5:]
