"""One engine over several nodes: the leader waits for its followers, and ends without them.

Played over HTTP, since that is what pods reach each other by here; the real one uses a TCP store
and NCCL. Source: vLLM 0.33 vllm/v1/executor/multiproc_executor.py, vllm/entrypoints/cli/serve.py.
"""

import http.client
import json
import os
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from world.engine.refused import Refused

MASTER_PORT = 29501  # the engine's own default
BEAT_SECONDS = 0.3
SILENT_SECONDS = 6.0  # a rank that says nothing for so long is gone
LOST = (
    "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:77, remote process exited or "
    "there was a network error, NCCL version 2.28.9\nncclRemoteError: A call failed possibly due "
    "to a network error or a remote process exiting prematurely."
)


def node_count(given: Mapping[str, Any]) -> int:
    return int(given.get("nnodes") or 1)


def node_rank(given: Mapping[str, Any]) -> int:
    return int(given.get("node_rank") or 0)


def own_stages(stages: int, nodes: int, rank: int) -> range:
    """The pipeline stages that a node holds; several nodes share one under tensor parallel.

    >>> [list(own_stages(4, 2, rank)) for rank in (0, 1)]
    [[0, 1], [2, 3]]
    >>> [list(own_stages(1, 2, rank)) for rank in (0, 1)]
    [[0], [0]]
    """
    if stages < nodes:
        return range(rank * stages // nodes, rank * stages // nodes + 1)
    each = stages // nodes
    return range(rank * each, (rank + 1) * each)


class Leader:
    """Node rank 0: hears of the others, and tells them how large the cache is."""

    def __init__(self, given: Mapping[str, Any], join_seconds: float) -> None:
        self.nodes = node_count(given)
        self.join_seconds = join_seconds
        self.cache_bytes: int | None = None
        self._said: dict[int, dict[str, Any]] = {}
        self._seen: dict[int, float] = {}
        self._changed = threading.Condition()
        address = os.environ.get("POD_LISTEN_ADDRESS") or str(given.get("master_addr"))
        port = int(given.get("master_port") or MASTER_PORT)
        self._server = ThreadingHTTPServer((address, port), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True).start()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        leader = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: Any) -> None:
                """Beats would fill the log."""

            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = json.dumps(leader.hear(json.loads(self.rfile.read(length)))).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        return Handler

    def hear(self, said: dict[str, Any]) -> dict[str, Any]:
        """A follower's word; what it said before it keeps."""
        with self._changed:
            rank = int(said["rank"])
            self._said[rank] = {**self._said.get(rank, {}), **said}
            self._seen[rank] = time.monotonic()
            self._changed.notify_all()
        return {"cache_bytes": self.cache_bytes}

    def wait_joined(self) -> None:
        """Refused where one never came."""
        with self._changed:
            whole = self._changed.wait_for(
                lambda: len(self._said) == self.nodes - 1, self.join_seconds
            )
            here = len(self._said) + 1
        if not whole:
            raise Refused(
                "load",
                f"torch.distributed.DistStoreError: Timed out after {self.join_seconds:.0f} "
                f"seconds waiting for clients. {here}/{self.nodes} clients joined.",
            )

    def least(self, available: Sequence[int]) -> list[int]:
        """The cache bytes of every stage, by the node that holds it and has least."""
        self._wait_for("available")
        least = list(available)
        for rank, said in self._said.items():
            for stage in own_stages(len(least), self.nodes, rank):
                shared = len(least) < self.nodes
                least[stage] = min(least[stage], said["available"][stage]) if shared else (
                    said["available"][stage]
                )  # fmt: skip
        return least

    def finish(self, cache_bytes: int) -> None:
        """The cache is planned; return when everybody holds its part of it."""
        self.cache_bytes = cache_bytes
        self._wait_for("done")

    def lost(self) -> bool:
        """Whether a follower is gone."""
        now = time.monotonic()
        with self._changed:
            return any(now - seen > SILENT_SECONDS for seen in self._seen.values()) or any(
                said.get("failed") for said in self._said.values()
            )

    def watch(self, on_lost: Callable[[], None]) -> None:
        """Call once a follower is gone."""

        def look() -> None:
            while not self.lost():
                time.sleep(BEAT_SECONDS)
            on_lost()

        threading.Thread(target=look, daemon=True).start()

    def _wait_for(self, word: str) -> None:
        while True:
            if self.lost():
                raise Refused("load", LOST)
            with self._changed:
                if all(word in said for said in self._said.values()):
                    return
                self._changed.wait(BEAT_SECONDS)


class Follower:
    """Any other node: joins the leader, and stays until it is asked to stop."""

    def __init__(self, given: Mapping[str, Any], join_seconds: float) -> None:
        self.rank, self.nodes = node_rank(given), node_count(given)
        self.join_seconds = join_seconds
        port = int(given.get("master_port") or MASTER_PORT)
        self._url = f"http://{given.get('master_addr')}:{port}/"
        self.cache_bytes: int | None = None

    def join(self) -> None:
        """Refused where no leader answers."""
        end = time.monotonic() + self.join_seconds
        while not self.say():
            if time.monotonic() > end:
                raise Refused(
                    "load",
                    "torch.distributed.DistNetworkError: The client socket has timed out after "
                    f"{self.join_seconds * 1000:.0f}ms while trying to connect to {self._url}.",
                )
            time.sleep(BEAT_SECONDS)

    def say(self, **words: Any) -> bool:
        """Whether the leader heard it."""
        data = json.dumps({"rank": self.rank, **words}).encode()
        request = urllib.request.Request(self._url, data, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=SILENT_SECONDS) as answer:
                self.cache_bytes = json.load(answer)["cache_bytes"]
        except (OSError, http.client.HTTPException, ValueError):
            return False
        return True

    def wait_for_cache(self) -> int:
        """The size the leader planned."""
        self.stay(lambda: self.cache_bytes is not None)
        assert self.cache_bytes is not None
        return self.cache_bytes

    def stay(self, until: Callable[[], bool]) -> None:
        """Beat until something is so; that its leader is gone it does not mind, as the real one."""
        while not until():
            self.say()
            time.sleep(BEAT_SECONDS)
