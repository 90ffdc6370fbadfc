"""One request: faults first, then control, API or file.

Source: huggingface_hub 2.4: utils/_http.py hf_raise_for_status (X-Error-Code), file_download.py
get_hf_file_metadata (X-Repo-Commit, X-Linked-Size, ETag), hf_api.py model_info.
"""

import json
import time
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

from world.hub.api_documents import model_document, tree_document
from world.hub.repository import Repository
from world.hub.virtual_files import VirtualFile

if TYPE_CHECKING:
    from world.hub.server import Hub

CHUNK_BYTES = 1 << 16


class HubHandler(BaseHTTPRequestHandler):
    """GET, HEAD and the control endpoint."""

    protocol_version = "HTTP/1.1"
    server_version = "world.hub"

    @property
    def hub(self) -> "Hub":
        hub: Hub = self.server.hub  # type: ignore[attr-defined]
        return hub

    def log_message(self, *_: Any) -> None:
        """Silent: the hub counts its requests instead."""

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length) or b"{}")
        if urlsplit(self.path).path != "/_control":
            self._json(404, {"error": "Not found"})
            return
        try:
            self.hub.switch(**body)
        except ValueError as error:
            self._json(400, {"error": str(error)})
        else:
            self._json(200, vars(self.hub.faults))

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        if urlsplit(self.path).path == "/_control":
            state = {
                "faults": vars(self.hub.faults),
                "repositories": sorted(self.hub.repositories),
                "requests": dict(self.hub.requests),
                "bytes_sent": self.hub.bytes_sent,
            }
            self._json(200, state)
            return
        self._answer()

    def _answer(self) -> None:
        parts = urlsplit(self.path)
        path = unquote(parts.path)
        self.hub.count(f"{self.command} {path}")
        faults = self.hub.faults
        if faults.delay_seconds:
            time.sleep(faults.delay_seconds)
        if faults.down:
            self.close_connection = True
            return
        if status := self.hub.take_status():
            extra = (
                {"Retry-After": str(faults.retry_after_seconds)}
                if faults.retry_after_seconds
                else {}
            )
            self._json(status, {"error": "Trouble"}, extra)
            return
        if path.startswith("/api/models/"):
            blobs = "blobs" in parse_qs(parts.query)
            self._api(path.removeprefix("/api/models/"), blobs=blobs)
        elif "/resolve/" in path:
            name, _, rest = path.strip("/").partition("/resolve/")
            revision, _, file_name = rest.partition("/")
            self._file(name, unquote(revision), file_name)
        else:
            self._refuse(404, "", "Not found")

    def _api(self, path: str, *, blobs: bool) -> None:
        if "/tree/" in path:
            name, _, rest = path.partition("/tree/")
            revision = rest.partition("/")[0]
        else:
            name, _, revision = path.partition("/revision/")
        found = self._repository(name, revision or "main", content=False)
        if found is None:
            return
        if "/tree/" in path:
            self._json(200, tree_document(found, self.hub.faults))
        else:
            self._json(200, model_document(found, self.hub.faults, blobs=blobs))

    def _repository(self, name: str, revision: str, *, content: bool) -> Repository | None:
        """The repository, or None after a refusal was sent."""
        found = self.hub.repositories.get(name)
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        accepted = found is not None and token in found.accepted_tokens
        if token and not self._is_known(token):
            message = "Invalid credentials in Authorization header"
            self._refuse(401, "", message)
        elif found is None or (found.private and not accepted):
            # The real hub says 401 to a stranger, so as not to tell what exists.
            self._refuse(404 if token else 401, "RepoNotFound", "Repository not found")
        elif found.disabled:
            self._refuse(403, "", "Access to this resource is disabled.")
        elif content and found.gated and not accepted:
            message = f"Access to model {name} is restricted."
            self._refuse(403 if token else 401, "GatedRepo", message)
        elif not found.has_revision(revision):
            self._refuse(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        else:
            return found
        return None

    def _is_known(self, token: str) -> bool:
        """Tokens that somebody has; `hf_stranger` has an account and no access to anything."""
        holders = (repository.accepted_tokens for repository in self.hub.repositories.values())
        return token == "hf_stranger" or any(token in tokens for tokens in holders)

    def _file(self, name: str, revision: str, file_name: str) -> None:
        repository = self._repository(name, revision, content=True)
        if repository is None:
            return
        file = repository.files.get(file_name)
        commit = {"X-Repo-Commit": repository.sha}
        if file is None:
            self._refuse(404, "EntryNotFound", "Entry not found", commit)
            return
        first, last = 0, file.size_bytes - 1
        wanted = self.headers.get("Range", "")
        ranged = wanted.startswith("bytes=") and not self.hub.faults.ignore_ranges
        if ranged:
            start, _, end = wanted.removeprefix("bytes=").partition("-")
            first = int(start) if start else file.size_bytes - int(end)
            last = min(int(end), last) if start and end else last
            if first >= file.size_bytes:
                self._refuse(416, "", "Range not satisfiable")
                return
        self._send_file(file, first, last - first + 1, ranged=ranged, commit=commit)

    def _send_file(
        self, file: VirtualFile, first: int, length: int, *, ranged: bool, commit: dict[str, str]
    ) -> None:
        faults = self.hub.faults
        stated = file.size_bytes * 7 + 1 if faults.lying_sizes else file.size_bytes
        self.send_response(206 if ranged else 200)
        for key, value in commit.items():
            self.send_header(key, value)
        self.send_header("ETag", f'"{file.etag}"')
        self.send_header("Accept-Ranges", "bytes")
        if file.large:
            self.send_header("X-Linked-Size", str(stated))
            self.send_header("X-Linked-ETag", f'"{file.etag}"')
        if ranged:
            span = f"bytes {first}-{first + length - 1}/{stated}"
            self.send_header("Content-Range", span)
        lies = faults.lying_sizes and self.command == "HEAD"
        self.send_header("Content-Length", str(stated if lies else length))
        self.end_headers()
        if self.command == "HEAD":
            return
        end = first + length
        if faults.cut_after_bytes >= 0:
            end = min(end, first + faults.cut_after_bytes)
            self.close_connection = True
        for at in range(first, end, CHUNK_BYTES):
            chunk = file.read(at, min(CHUNK_BYTES, end - at))
            self.wfile.write(self._spoiled(file, at, chunk))
            self.hub.count("", len(chunk))

    def _spoiled(self, file: VirtualFile, at: int, chunk: bytes) -> bytes:
        if not file.large or at > 0:
            return chunk
        if self.hub.faults.huge_headers:
            return (1 << 62).to_bytes(8, "little") + chunk[8:]
        if self.hub.faults.garbled_headers:
            return chunk[:8] + b"?" + chunk[9:]
        return chunk

    def _refuse(
        self, status: int, code: str, message: str, extra: dict[str, str] | None = None
    ) -> None:
        headers = {"X-Error-Message": message} | ({"X-Error-Code": code} if code else {})
        self._json(status, {"error": message}, headers | (extra or {}))

    def _json(self, status: int, content: object, extra: dict[str, str] | None = None) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for key, value in (extra or {}).items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
