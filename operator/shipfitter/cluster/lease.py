"""One operator at a time: a Lease that is held, renewed, and given back.

While it cannot be renewed nothing may be written; once another holds it the process ends. An API
server that is away for a minute lets nobody take over, so it is no reason to end.

Whether another holder is alive is judged by our own clock: a lease that did not change for its
whole duration since we first saw it is free. Clocks of different machines are compared only with
a wide margin, to take over at once what was abandoned long ago.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from shipfitter.cluster.client import Client
from shipfitter.cluster.failures import ApiError
from shipfitter.cluster.kinds import LEASE

# Source: the defaults of Kubernetes' own controllers (client-go leaderelection): 15, 10 and 2 s.
DURATION_SECONDS = 15.0
DEADLINE_SECONDS = 10.0
PERIOD_SECONDS = 2.0
ABANDONED_AFTER_SECONDS = 60.0  # clocks may disagree by less

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Seen:
    version: str = ""
    since_seconds: float = 0.0


class LeaderLease:
    """A Lease of ours, or one we wait for."""

    def __init__(
        self,
        client: Client,
        *,
        namespace: str,
        identity: str,
        name: str = "shipfitter-operator",
        period_seconds: float = PERIOD_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.identity = identity
        self._client = client
        self._path = LEASE.path(namespace, name)
        self._collection = LEASE.path(namespace)
        self._name = name
        self._period_seconds = period_seconds
        self._clock = clock
        self._stopping = threading.Event()
        self._seen = _Seen()
        self._renewed_at: float | None = None
        self._version = ""
        self._acquired = ""
        self._transitions = 0
        self._told = ""
        self._thread: threading.Thread | None = None

    @property
    def held(self) -> bool:
        """True while nobody else can act."""
        renewed = self._renewed_at
        return renewed is not None and self._clock() - renewed < DEADLINE_SECONDS

    def acquire(self) -> bool:
        """True once the lease is ours; False where `stop` came first."""
        while not self._stopping.is_set():
            try:
                if self.try_acquire():
                    return True
            except ApiError as error:
                self._tell(f"lease {self._name}: {error.message}")
            self._stopping.wait(self._period_seconds)
        return False

    def try_acquire(self) -> bool:
        """One look at the lease, and one attempt where it is free."""
        began = self._clock()
        try:
            live = self._client.request("GET", self._path)
        except ApiError as error:
            if not error.not_found:
                raise
            return self._write("POST", self._collection, self._body(), began)
        spec = live.get("spec") or {}
        holder = spec.get("holderIdentity") or ""
        if holder not in ("", self.identity) and not self._is_free(live):
            self._tell(f"waits: {holder} holds the lease {self._name}")
            return False
        if holder != self.identity:
            self._acquired = ""
        self._transitions = int(spec.get("leaseTransitions") or 0) + (holder != self.identity)
        body = self._body()
        body["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"]
        return self._write("PUT", self._path, body, began)

    def keep(self, on_loss: Callable[[], None]) -> None:
        """A thread renews the lease; `on_loss` is called once when it is lost."""
        self._thread = threading.Thread(
            target=self._renew_until_lost, args=(on_loss,), name="lease", daemon=True
        )
        self._thread.start()

    def release(self) -> None:
        """The next one need not wait; where that cannot be written it waits for the duration."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(timeout=1.0)
        if not self.held:
            return
        body = self._body()
        body["metadata"]["resourceVersion"] = self._version
        body["spec"] |= {"holderIdentity": "", "leaseDurationSeconds": 1}
        try:
            self._client.request("PUT", self._path, body=body)
        except ApiError as error:
            log.debug("lease not given back: %s", error)
        self._renewed_at = None

    def stop(self) -> None:
        """Waiting and renewing end; the lease stays as it is."""
        self._stopping.set()

    def _renew_until_lost(self, on_loss: Callable[[], None]) -> None:
        while not self._stopping.wait(self._period_seconds):
            try:
                if not self.try_acquire():
                    break
            except ApiError as error:
                self._tell(f"lease {self._name} not renewed, nothing is written: {error.message}")
        if not self._stopping.is_set():
            self._renewed_at = None
            log.error("lost the lease %s to another operator; exits", self._name)
            on_loss()

    def _write(self, method: str, path: str, body: dict[str, Any], began: float) -> bool:
        try:
            answer = self._client.request(method, path, body=body)
        except ApiError as error:
            if error.conflict:  # somebody was faster; look again
                return self.held
            raise
        self._renewed_at = began  # before the request: never later than others may count
        if self._told or not self._version:
            log.info("holds the lease %s as %s", self._name, self.identity)
        self._told = ""
        self._version = answer["metadata"]["resourceVersion"]
        return True

    def _is_free(self, live: dict[str, Any]) -> bool:
        now, spec = self._clock(), live.get("spec") or {}
        version = live["metadata"]["resourceVersion"]
        if version != self._seen.version:
            self._seen = _Seen(version, now)
        duration = float(spec.get("leaseDurationSeconds") or DURATION_SECONDS)
        if now - self._seen.since_seconds >= duration:
            return True
        renewed = spec.get("renewTime")
        if not renewed:
            return False
        age = (datetime.now(UTC) - datetime.fromisoformat(renewed)).total_seconds()
        return age > duration + ABANDONED_AFTER_SECONDS

    def _body(self) -> dict[str, Any]:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        self._acquired = self._acquired or now
        return {
            "apiVersion": LEASE.api_version,
            "kind": LEASE.kind,
            "metadata": {"name": self._name},
            "spec": {
                "holderIdentity": self.identity,
                "leaseDurationSeconds": int(DURATION_SECONDS),
                "acquireTime": self._acquired,
                "renewTime": now,
                "leaseTransitions": self._transitions,
            },
        }

    def _tell(self, message: str) -> None:
        if message != self._told:
            self._told = message
            log.info("%s", message)
