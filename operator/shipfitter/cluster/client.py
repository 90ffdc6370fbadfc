"""The API server over HTTP: dicts in, dicts out; credentials come from the `kubernetes` package.

Only its configuration loaders and its HTTP layer are used, not its model classes: the objects we
write are plain dicts, and turning thousands of listed objects into model instances costs ten times
the time and memory of the JSON itself. (Importing a part saves nothing: the package imports all of
itself, 38 MiB and 0.7 s measured with version 37.0.2.)
"""

import json
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any
from urllib.parse import quote, urlencode

import urllib3
from kubernetes.client import Configuration
from kubernetes.client.exceptions import ApiException
from kubernetes.client.rest import RESTClientObject

from shipfitter.cluster.connection import Credentials, credentials, load_configuration
from shipfitter.cluster.failures import ApiError, ClusterUnreachableError, api_error, unreachable
from shipfitter.cluster.kinds import Kind, kind_of

CONNECT_SECONDS = 5.0
READ_SECONDS = 30.0
USER_AGENT = f"shipfitter/{version('shipfitter')}"

# Objects per answer of a list. A page is the largest thing ever in memory: with 1,000 Nodes and
# GPUNodes the process weighs 97 MiB with 200 of them and 119 MiB with 500 (measured).
PAGE_OBJECTS = 200

JSON = "application/json"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

log = logging.getLogger(__name__)
Body = dict[str, Any]


class Client:
    """One connection pool, safe for threads; credentials are read again after a 401."""

    def __init__(self, load: Callable[[], Configuration] = load_configuration) -> None:
        self._load = load
        self._lock = threading.Lock()
        self._configuration = load()
        self._rest = RESTClientObject(self._configuration)

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        content_type: str = JSON,
    ) -> Body:
        """The answer's JSON; an ApiError where the server did not do it."""
        for attempt in (1, 2):
            response = self._send(method, path, query=query, body=body, content_type=content_type)
            try:
                data = response.read()
            except urllib3.exceptions.HTTPError as error:
                raise unreachable(error) from error
            if response.status == 401 and attempt == 1:
                self.reload()
                continue
            break
        answer = _parse(data)
        if response.status >= 400:
            raise api_error(response.status, answer, response.headers)
        return answer if isinstance(answer, dict) else {}

    def text(self, path: str, *, query: Mapping[str, Any]) -> str:
        """An answer that is no JSON: a log."""
        response = self._send("GET", path, query=query)
        try:
            data = response.read()
        except urllib3.exceptions.HTTPError as error:
            raise unreachable(error) from error
        if response.status >= 400:
            raise api_error(response.status, _parse(data), response.headers)
        return data.decode(errors="replace")

    @contextmanager
    def stream(
        self, path: str, *, query: Mapping[str, Any], read_seconds: float
    ) -> Iterator[urllib3.BaseHTTPResponse]:
        """An open response to read from for as long as the server sends."""
        response = self._send("GET", path, query=query, read_seconds=read_seconds)
        try:
            if response.status >= 400:
                if response.status == 401:
                    self.reload()
                raise api_error(response.status, _parse(response.read()), response.headers)
            yield response
        finally:
            response.close()

    def read(self, kind: Kind, namespace: str, name: str) -> Body | None:
        """The live object; None where it does not exist."""
        try:
            return self.request("GET", kind.path(namespace, name))
        except ApiError as error:
            if error.not_found:
                return None
            raise

    def pages(
        self, kind: Kind, namespace: str = "", *, query: Mapping[str, Any] | None = None
    ) -> Iterator[Body]:
        """Every page of a list; never the whole list in memory."""
        wanted: dict[str, Any] = {**(query or {}), "limit": PAGE_OBJECTS}
        while True:
            page = self.request("GET", kind.path(namespace), query=wanted)
            yield page
            token = page.get("metadata", {}).get("continue")
            if not token:
                return
            wanted["continue"] = token

    def apply(self, manifest: Mapping[str, Any], *, manager: str) -> Body:
        """The object after a server-side apply; our fields are taken from whoever holds them."""
        metadata = manifest["metadata"]
        return self.request(
            "PATCH",
            kind_of(manifest).path(metadata.get("namespace", ""), metadata["name"]),
            query={"fieldManager": manager, "force": "true"},
            body=dict(manifest),
            content_type=APPLY_PATCH,
        )

    def patch(
        self, path: str, patch: Any, *, content_type: str = JSON_PATCH, manager: str = ""
    ) -> Body:
        """The object after a patch."""
        query = {"fieldManager": manager} if manager else None
        return self.request("PATCH", path, query=query, body=patch, content_type=content_type)

    def delete(self, kind: Kind, namespace: str, name: str, *, uid: str) -> bool:
        """True where the object went; False where it, or that incarnation of it, was gone."""
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": uid},
            "propagationPolicy": "Background",
        }
        try:
            self.request("DELETE", kind.path(namespace, name), body=options)
        except ApiError as error:
            if error.not_found or error.conflict:
                return False
            raise
        return True

    def credentials(self) -> Credentials:
        """What another client needs to speak to the same server as the same identity."""
        with self._lock:
            return credentials(self._configuration)

    def reload(self) -> None:
        """Credentials are as they are on disk now; kept where those cannot be read."""
        try:
            configuration = self._load()
        except ClusterUnreachableError as error:
            log.warning("credentials cannot be read again: %s", error)
            return
        with self._lock:
            self._configuration = configuration
            self._rest = RESTClientObject(configuration)

    def close(self) -> None:
        """Idle connections are closed."""
        self._rest.close()

    def _send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        content_type: str = JSON,
        read_seconds: float = READ_SECONDS,
    ) -> urllib3.BaseHTTPResponse:
        url = self._configuration.host + quote(path)
        if query:
            url += "?" + urlencode(query)
        headers = {"Accept": JSON, "User-Agent": USER_AGENT}
        if body is not None:
            headers["Content-Type"] = content_type
        with self._lock:  # reading a token file is not safe to do twice at once
            authorization = self._configuration.get_api_key_with_prefix("BearerToken")
            rest = self._rest
        if authorization:
            headers["Authorization"] = authorization
        try:
            answer = rest.request(
                method,
                url,
                headers=headers,
                body=body,
                _request_timeout=(CONNECT_SECONDS, read_seconds),
            )
        except (urllib3.exceptions.HTTPError, ApiException, OSError) as error:
            raise unreachable(error) from error
        response: urllib3.BaseHTTPResponse = answer.response
        return response


def _parse(data: bytes) -> Any:
    try:
        return json.loads(data) if data else {}
    except ValueError:
        return data.decode(errors="replace")
