"""The Kubernetes API, as much as an agent needs: read and apply its own object, small in memory."""

import http.client
import json
import random
import ssl
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from shipfitter.agent.credentials import Credentials, CredentialsError
from shipfitter.agent.report import API_VERSION, KIND

FIELD_MANAGER = "shipfitter-agent"
COLLECTION = f"/apis/{API_VERSION}/gpunodes"
TIMEOUT_SECONDS = 20
TOKEN_SECONDS = 60  # a projected token's file is replaced long before the old one ends


class ApiError(Exception):
    """The API server said no, or nothing; `retry_after_seconds` is its wish, where it has one."""

    def __init__(self, status: int, message: str, retry_after_seconds: float | None = None) -> None:
        self.status = status
        self.retry_after_seconds = retry_after_seconds
        super().__init__(message)


class Api:
    """One kept connection to the API server."""

    def __init__(
        self, credentials: Credentials, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._credentials = credentials
        self._monotonic = monotonic
        self._connection: http.client.HTTPConnection | None = None
        self._token = ""
        self._token_read_at: float | None = None

    def token(self, *, renew: bool = False) -> str:
        """The bearer token, read again every minute."""
        now = self._monotonic()
        if renew or self._token_read_at is None or now - self._token_read_at > TOKEN_SECONDS:
            self._token = self._credentials.token()
            self._token_read_at = now
        return self._token

    def own_object(self, name: str) -> dict[str, Any] | None:
        """The object as it is; None where there is none yet."""
        try:
            return self._call("GET", f"{COLLECTION}/{name}")
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def write(self, name: str, owner_uid: str, status: dict[str, Any]) -> None:
        """Apply the status, and the object itself where it is missing. Raises ApiError."""
        try:
            self._apply(name, {"status": status}, "/status")
        except ApiError as error:
            if error.status != 404:
                raise
            self.create(name, owner_uid)
            self._apply(name, {"status": status}, "/status")

    def create(self, name: str, owner_uid: str) -> None:
        """Apply the object without its status, owned by its Node so that it goes when that goes."""
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": owner_uid}
        self._apply(name, {}, "", owners=[owner] if owner_uid else [])

    def close(self) -> None:
        """Close the connection; the next call opens another."""
        if self._connection:
            self._connection.close()
            self._connection = None

    def _apply(
        self,
        name: str,
        content: dict[str, Any],
        subresource: str,
        owners: list[dict[str, str]] | None = None,
    ) -> None:
        metadata: dict[str, Any] = {"name": name}
        if owners:
            metadata["ownerReferences"] = owners
        body = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, **content}
        query = f"?fieldManager={FIELD_MANAGER}&force=true"
        self._call("PATCH", f"{COLLECTION}/{name}{subresource}{query}", body)

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        try:
            return self._once(method, path, body)
        except ApiError as error:
            if error.status != 401:
                raise
            self.token(renew=True)  # it may just have been replaced
            return self._once(method, path, body)

    def _once(self, method: str, path: str, body: dict[str, Any] | None) -> dict[str, Any]:
        headers = {"Accept": "application/json", "User-Agent": FIELD_MANAGER}
        try:
            if token := self.token():
                headers["Authorization"] = f"Bearer {token}"
        except CredentialsError as error:
            raise ApiError(0, str(error)) from None
        if body is not None:
            headers["Content-Type"] = "application/apply-patch+yaml"  # JSON is YAML
        payload = None if body is None else json.dumps(body)
        try:
            response, content = self._send(method, path, payload, headers)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise ApiError(
                0, f"{self._credentials.server}: {error or type(error).__name__}"
            ) from None
        if response.status >= 400:
            raise ApiError(
                response.status,
                f"{method} {path}: {response.status} {_message(content)}",
                _seconds(response.getheader("Retry-After")),
            )
        return dict(json.loads(content))

    def _send(
        self, method: str, path: str, payload: str | None, headers: dict[str, str]
    ) -> tuple[http.client.HTTPResponse, bytes]:
        fresh = self._connection is None
        connection = self._connection or self._connect()
        try:
            connection.request(method, self._prefix + path, payload, headers)
            response = connection.getresponse()
        except (ConnectionError, http.client.HTTPException):
            self.close()
            if fresh:
                raise
            connection = self._connect()  # a kept connection that the server closed meanwhile
            connection.request(method, self._prefix + path, payload, headers)
            response = connection.getresponse()
        return response, response.read()

    def _connect(self) -> http.client.HTTPConnection:
        target = urlsplit(self._credentials.server)
        self._prefix = target.path.rstrip("/")
        context = self._credentials.ssl_context
        host = target.hostname or ""
        if context is None:
            connection = http.client.HTTPConnection(host, target.port, timeout=TIMEOUT_SECONDS)
        else:
            connection = _NamedConnection(
                host, target.port, timeout=TIMEOUT_SECONDS, context=context
            )
            connection.server_name = self._credentials.server_name
        self._connection = connection
        return connection


class _NamedConnection(http.client.HTTPSConnection):
    """HTTPS that may expect another name in the certificate than it connects to."""

    server_name = ""
    context: ssl.SSLContext

    def __init__(self, *arguments: Any, context: ssl.SSLContext, **options: Any) -> None:
        super().__init__(*arguments, context=context, **options)
        self.context = context

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        self.sock = self.context.wrap_socket(
            self.sock, server_hostname=self.server_name or self.host
        )


class BackOff:
    """Growing pauses, from the first to the last, each a little irregular."""

    def __init__(self, first_seconds: float, last_seconds: float) -> None:
        self._first_seconds, self._last_seconds = first_seconds, last_seconds
        self._next_seconds = first_seconds

    def pause_seconds(self, wish_seconds: float | None = None) -> float:
        """How long to wait now; never less than the other side wishes."""
        pause_seconds = self._next_seconds * random.uniform(0.8, 1.0)
        self._next_seconds = min(2 * self._next_seconds, self._last_seconds)
        return max(pause_seconds, wish_seconds or 0)

    def reset(self) -> None:
        """After a success the next failure starts small again."""
        self._next_seconds = self._first_seconds


def _message(content: bytes) -> str:
    """The server's own words."""
    try:
        return str(json.loads(content)["message"])
    except (ValueError, KeyError, TypeError):
        return content[:200].decode(errors="replace")


def _seconds(header: str | None) -> float | None:
    """Retry-After in seconds; the form with a date is not used by API servers."""
    return float(header) if header and header.strip().isdecimal() else None
