"""The Kubernetes API over plain HTTPS: requests, and a watch that survives a server's restart."""

import contextlib
import http.client
import json
import logging
import socket
import ssl
import threading
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

LOG = logging.getLogger("world.nodes")
Object = dict[str, Any]
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
REQUEST_SECONDS = 15
WATCH_SECONDS = 240  # the server ends a watch after this; the socket waits a little longer
WEATHER = (OSError, http.client.HTTPException, ValueError)


class ApiError(Exception):
    """The API server refused; `status` is the HTTP code."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message


class Api:
    """One user of one API server; safe to use from many threads."""

    def __init__(self, url: str, ca_file: str | Path, token: str) -> None:
        self.url, self.ca_file, self._token = url, str(ca_file), token
        parts = urllib.parse.urlsplit(url)
        self.host, self.port = parts.hostname or "", parts.port or 443
        self._context = ssl.create_default_context(cafile=self.ca_file)
        self._idle: list[http.client.HTTPSConnection] = []
        self._lock = threading.Lock()

    def get(self, path: str, **query: str) -> Object:
        """One object, or a list."""
        return self.request("GET", path, query=query)

    def post(self, path: str, body: Mapping[str, Any]) -> Object:
        """Create."""
        return self.request("POST", path, body)

    def patch(self, path: str, body: Mapping[str, Any], content_type: str = MERGE) -> Object:
        """Change."""
        return self.request("PATCH", path, body, content_type=content_type)

    def delete(self, path: str, body: Mapping[str, Any] | None = None) -> Object:
        """Delete; `body` are DeleteOptions."""
        return self.request("DELETE", path, body)

    def request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Object:
        """The answer's JSON; a kept connection that the server closed is replaced once."""
        target = path + (f"?{urllib.parse.urlencode(query)}" if query else "")
        payload = None if body is None else json.dumps(body)
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        if connection is not None:
            try:
                return self._send(connection, method, target, payload, content_type)
            except WEATHER:
                connection.close()
        return self._send(self.connect(REQUEST_SECONDS), method, target, payload, content_type)

    def _send(
        self,
        connection: http.client.HTTPSConnection,
        method: str,
        target: str,
        payload: str | None,
        content_type: str,
    ) -> Object:
        try:
            connection.request(method, target, payload, self.headers(content_type))
            response = connection.getresponse()
            data = response.read()
        except BaseException:
            connection.close()
            raise
        with self._lock:
            self._idle.append(connection)
        answer: Object = json.loads(data) if data.startswith(b"{") else {}
        if response.status >= 400:
            raise ApiError(response.status, answer.get("message") or data.decode(errors="replace"))
        return answer

    def headers(self, content_type: str = "application/json") -> dict[str, str]:
        """Who we are, and JSON both ways."""
        return {
            "Authorization": f"Bearer {self._token}",
            "Content-Type": content_type,
            "Accept": "application/json",
            "User-Agent": "world.nodes",
        }

    def connect(self, timeout_seconds: float) -> http.client.HTTPSConnection:
        """A fresh connection."""
        return http.client.HTTPSConnection(
            self.host, self.port, timeout=timeout_seconds, context=self._context
        )

    def close(self) -> None:
        """Close the kept connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()


class Watch(threading.Thread):
    """Tells every object of a kind, then every change; after a gap also what vanished in it."""

    def __init__(
        self, api: Api, path: str, on_event: Callable[[str, Object], None], **query: str
    ) -> None:
        super().__init__(name=f"watch {path}", daemon=True)
        self._api, self._path, self._on_event, self._query = api, path, on_event, query
        self._known: dict[str, Object] = {}
        self._version = ""
        self._stopped = threading.Event()
        self._connection: http.client.HTTPSConnection | None = None
        self.listed = threading.Event()

    def run(self) -> None:
        while not self._stopped.is_set():
            try:
                if not self._version:
                    self._list()
                for event in self._stream():
                    self._tell(event["type"], event["object"])
            except (ApiError, *WEATHER) as error:
                if not self._stopped.is_set():
                    LOG.debug("watch %s: %s", self._path, error)
                    self._version = ""
                    self._stopped.wait(0.5)

    def stop(self) -> None:
        """End the thread; a read that waits is woken."""
        self._stopped.set()
        connection = self._connection
        sock = connection.sock if connection is not None else None
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        if self.is_alive():
            self.join()

    def _list(self) -> None:
        listing = self._api.get(self._path, **self._query)
        present = {item["metadata"]["uid"]: item for item in listing.get("items") or []}
        for uid in self._known.keys() - present.keys():
            self._tell("DELETED", self._known[uid])
        for item in present.values():
            self._tell("ADDED", item)
        self._version = listing["metadata"]["resourceVersion"]
        self.listed.set()

    def _tell(self, kind: str, item: Object) -> None:
        if kind == "ERROR":  # usually 410: the version is too old
            raise ApiError(item.get("code", 500), item.get("message", ""))
        self._version = item["metadata"].get("resourceVersion", self._version)
        if kind == "BOOKMARK":
            return
        uid = item["metadata"]["uid"]
        if kind == "DELETED":
            self._known.pop(uid, None)
        else:
            self._known[uid] = item
        try:
            self._on_event(kind, item)
        except Exception:  # one object that is not understood must not blind us to all others
            LOG.exception("%s %s %s", kind, self._path, item["metadata"].get("name"))

    def _stream(self) -> Iterator[Object]:
        query = {
            **self._query,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(WATCH_SECONDS),
        }
        connection = self._connection = self._api.connect(WATCH_SECONDS + 30)
        try:
            connection.request(
                "GET", f"{self._path}?{urllib.parse.urlencode(query)}", headers=self._api.headers()
            )
            if self._stopped.is_set():
                return
            response = connection.getresponse()
            if response.status != 200:
                raise ApiError(response.status, response.read().decode(errors="replace"))
            for line in response:
                yield json.loads(line)
        finally:
            self._connection = None
            connection.close()
