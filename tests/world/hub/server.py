"""The HTTP side: what `huggingface_hub` asks, answered from virtual repositories."""

import sys
import threading
from collections import Counter
from http.server import ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from world.hub.answers import HubHandler
from world.hub.faults import Faults
from world.hub.repository import Repository


class Hub:
    """A hub on a free port of this machine; `with Hub(repos) as hub:` serves until the end."""

    def __init__(self, *repositories: Repository, host: str = "127.0.0.1", port: int = 0) -> None:
        self.repositories = {repository.name: repository for repository in repositories}
        self.faults = Faults()
        self.requests: Counter[str] = Counter()  # "GET /path"
        self.bytes_sent = 0
        self._lock = threading.Lock()
        self._server = _Server((host, port), HubHandler)
        self._server.hub = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    @property
    def endpoint(self) -> str:
        """What to set HF_ENDPOINT to."""
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    def add(self, repository: Repository) -> None:
        """Serve this repository; one of the same name is replaced, as by a new commit."""
        self.repositories[repository.name] = repository

    def remove(self, name: str) -> None:
        del self.repositories[name]

    def switch(self, **faults: Any) -> None:
        """Change faults: `hub.switch(down=True)`; `hub.switch()` with nothing ends them all."""
        with self._lock:
            self.faults = self.faults.changed(faults) if faults else Faults()

    def count(self, request: str, sent_bytes: int = 0) -> None:
        with self._lock:
            if request:
                self.requests[request] += 1
            self.bytes_sent += sent_bytes

    def take_status(self) -> int:
        """The status every answer has now; 0: none. One that comes a number of times is used up."""
        with self._lock:
            faults = self.faults
            if not faults.status or faults.status_times == 0:
                return 0
            if faults.status_times > 0:
                self.faults = faults.changed({"status_times": faults.status_times - 1})
            return faults.status

    def start(self) -> Self:
        self._thread.start()
        return self

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def serve(self) -> None:
        """Serve in this thread until interrupted."""
        try:
            self._server.serve_forever(0.2)
        finally:
            self._server.server_close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    hub: Hub

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has read enough hangs up; that is no error of ours."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)
