"""A list-watch of one kind: small values in memory, told apart by meaning, never left stalled.

Each watch is one thread with one long request. A silent connection ends by the read timeout, a
lost position (410) by a new list; everything else is retried with a growing, jittered wait.
"""

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar

import urllib3

from shipfitter.cluster.backoff import Backoff
from shipfitter.cluster.client import Client
from shipfitter.cluster.failures import UNREACHABLE, ApiError, api_error
from shipfitter.cluster.kinds import Kind
from shipfitter.cluster.store import Change, Store

READ_SECONDS = 90.0  # bookmarks come about once a minute; a longer silence is a dead connection
SERVER_SECONDS = 300  # how long the server keeps a stream before it ends it by itself
SHORTEST_STREAM_SECONDS = 1.0  # a stream that ends sooner counts as a failure
CHUNK_BYTES = 65_536
ABSENT_SECONDS = 120.0  # how often to look whether an optional kind came into being
FORBIDDEN = 403

T = TypeVar("T")
log = logging.getLogger(__name__)


class Watch(Generic[T]):
    """The live objects of one kind (and namespace), trimmed; `on_change` hears real differences."""

    def __init__(
        self,
        client: Client,
        kind: Kind,
        trim: Callable[[Mapping[str, Any]], T],
        *,
        namespace: str = "",
        selector: str = "",
        optional: bool = False,
        absent_seconds: float = ABSENT_SECONDS,
        on_presence: Callable[[], None] = lambda: None,
        on_change: Callable[[Change[T]], None] = lambda change: None,
        read_seconds: float = READ_SECONDS,
        backoff: Backoff | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.kind = kind
        self.namespace = namespace
        self.synced = threading.Event()
        self.last_activity_seconds = clock()
        self.store: Store[T] = Store(trim)
        self._client = client
        self._selection = {"labelSelector": selector} if selector else {}
        self._optional = optional  # a kind that not every cluster has: without it there are none
        self._absent_seconds = absent_seconds
        self._on_presence = on_presence  # an optional kind came into being, or went
        self._on_change = on_change
        self.present = False  # whether there is such a kind, and it is for us
        self._read_seconds = read_seconds
        self._backoff = backoff or Backoff(most_seconds=60.0)
        self._clock = clock
        self._stopping = threading.Event()
        self._response: urllib3.BaseHTTPResponse | None = None
        self._position = ""  # the resource version to watch from; empty: list first
        self._problem: int | None = None  # status of the last failure, told once
        self._thread = threading.Thread(target=self._run, name=f"watch-{kind.plural}", daemon=True)

    def start(self) -> None:
        """The thread runs; `synced` is set after the first whole list."""
        self._thread.start()

    def stop(self, timeout_seconds: float = 2.0) -> None:
        """The thread ends; a read in progress is cut short."""
        self._stopping.set()
        response = self._response
        if response is not None:
            try:
                response.shutdown()
            except (ValueError, OSError, AttributeError):  # it ended by itself meanwhile
                log.debug("watch %s had no open stream", self.kind.plural)
        if self._thread.is_alive():
            self._thread.join(timeout_seconds)

    @property
    def alive(self) -> bool:
        """True while the thread runs."""
        return self._thread.is_alive()

    def learn(self, raw: Mapping[str, Any]) -> None:
        """Take in an object that a write of ours returned, before the stream brings it."""
        self._tell(self.store.put(raw))

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                if not self._position:
                    self._list()
                began = self._clock()
                self._follow()
                if self._clock() - began < SHORTEST_STREAM_SECONDS:
                    raise ApiError(UNREACHABLE, "the stream ended at once")
            except ApiError as error:
                if self._stopping.is_set():
                    return
                if self._optional and (error.not_found or error.status == FORBIDDEN):
                    self._do_without(error)
                else:
                    self._rest(error)
            except Exception:
                log.exception("watch %s: a mistake of ours; listing again", self.kind.plural)
                self._rest(ApiError(UNREACHABLE, "internal error"))
                self._position = ""

    def _do_without(self, error: ApiError) -> None:
        """The kind is not there, or not for us: nobody waits for it; look again now and then."""
        self._position = ""
        self.store.begin_list()
        for change in self.store.end_list(""):
            self._tell(change)
        if self._problem != error.status:
            self._problem = error.status
            level = logging.DEBUG if error.not_found else logging.WARNING
            log.log(level, "watch %s: %s; going on without", self.kind.plural, error.message)
        self._find(present=False)
        self.synced.set()
        self._stamp()
        self._stopping.wait(self._absent_seconds * self._backoff.chance.uniform(0.9, 1.1))
        self._stamp()

    def _find(self, *, present: bool) -> None:
        changed, self.present = present is not self.present, present
        if changed and self.synced.is_set():  # the first look is no news
            log.info("watch %s: %s", self.kind.plural, "is there now" if present else "is gone")
            self._on_presence()

    def _rest(self, error: ApiError) -> None:
        self._stamp()
        wait_seconds = self._backoff.next_seconds(error.retry_after_seconds)
        if error.gone and self._position:  # normal after a pause: list again, not all at once
            wait_seconds = self._backoff.chance.uniform(0.0, min(1.0, wait_seconds))
            self._position = ""
        elif self._problem != error.status:
            self._problem = error.status
            log.warning(
                "watch %s: %s; next try in %.0f s", self.kind.plural, error.message, wait_seconds
            )
        self._stopping.wait(wait_seconds)
        self._stamp()

    def _list(self) -> None:
        position = ""
        self.store.begin_list()
        for page in self._client.pages(self.kind, self.namespace, query=self._selection):
            self._stamp()
            for raw in page.get("items") or ():
                self.store.add_listed(raw)
            position = page["metadata"]["resourceVersion"]
        changes = self.store.end_list(position)
        self._position = position
        for change in changes:
            self._tell(change)
        self._healthy()
        self._find(present=True)
        if not self.synced.is_set():
            log.debug("watch %s: %d objects", self.kind.plural, len(self.store))
            self.synced.set()

    def _follow(self) -> None:
        server_seconds = int(SERVER_SECONDS * self._backoff.chance.uniform(0.9, 1.1))
        query = {
            **self._selection,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._position,
            "timeoutSeconds": server_seconds,
        }
        path = self.kind.path(self.namespace)
        with self._client.stream(path, query=query, read_seconds=self._read_seconds) as response:
            self._response = response
            self._stamp()
            try:
                if self._stopping.is_set():
                    return
                for line in _lines(response):
                    self._stamp()
                    self._take(json.loads(line))
                    self._healthy()
                    if self._stopping.is_set():
                        return
            finally:
                self._response = None

    def _take(self, event: Mapping[str, Any]) -> None:
        raw = event["object"]
        match event["type"]:
            case "ERROR":
                raise api_error(int(raw.get("code") or 500), raw)
            case "BOOKMARK":
                pass
            case "DELETED":
                self._tell(self.store.remove(raw))
            case _:
                self._tell(self.store.put(raw))
        self._position = raw["metadata"]["resourceVersion"]

    def _tell(self, change: Change[T] | None) -> None:
        if change is None:
            return
        try:
            self._on_change(change)
        except Exception:
            log.exception("watch %s: a change of %s was not used", self.kind.plural, change.key)

    def _healthy(self) -> None:
        self._backoff.reset()
        if self._problem is not None:
            log.info("watch %s: works again", self.kind.plural)
            self._problem = None

    def _stamp(self) -> None:
        self.last_activity_seconds = self._clock()


def _lines(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    """Whole lines as they come; a cut line is dropped, for the next stream brings it again."""
    rest = b""
    try:
        for chunk in response.stream(CHUNK_BYTES, decode_content=True):
            *whole, rest = (rest + chunk).split(b"\n")
            yield from (line for line in whole if line.strip())
    except (urllib3.exceptions.ProtocolError, OSError):
        return  # closed in the middle of a chunk: how load balancers and dying servers end it
    except urllib3.exceptions.HTTPError as error:
        raise ApiError(UNREACHABLE, f"the stream went silent: {error}") from error
