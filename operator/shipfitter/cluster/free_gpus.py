"""Devices held by other people's pods: a paged list of all pods, shared, at most once in 10 s.

Our own pods are left out: the watch knows them sooner and better. A watch of every pod of a
cluster would cost more than the answer is worth, so what others do is known a little late.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Container, Mapping
from typing import Any

from shipfitter.cluster.client import Client
from shipfitter.cluster.gpu_requests import gpu_requests
from shipfitter.cluster.kinds import OWNER_LABEL, POD

MIN_AGE_SECONDS = 10.0

# Pods that hold something: bound and not ended. A terminating pod holds its GPUs to the end.
HOLDING = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"

Used = Mapping[str, Mapping[str, int]]  # node name → resource name → devices


class ForeignUse:
    """What pods that are not ours hold on each node."""

    def __init__(
        self,
        client: Client,
        *,
        own_namespaces: Container[str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._own_namespaces = own_namespaces  # None: all
        self._clock = clock
        self._lock = threading.Lock()
        self._listed_at: float | None = None
        self._used: Used = {}

    def used(self) -> Used:
        """Devices by node, at most 10 s old; callers that come while it is read share it."""
        with self._lock:
            now = self._clock()
            if self._listed_at is None or now - self._listed_at >= MIN_AGE_SECONDS:
                self._used = self._list()
                self._listed_at = self._clock()
            return self._used

    def known(self) -> Used:
        """The last answer, whatever its age."""
        return self._used

    def _list(self) -> Used:
        used: dict[str, Counter[str]] = {}
        for page in self._client.pages(POD, query={"fieldSelector": HOLDING}):
            for raw in page.get("items") or ():
                if not self._is_ours(raw["metadata"]):
                    for name, count in gpu_requests(raw["spec"]).items():
                        used.setdefault(raw["spec"]["nodeName"], Counter())[name] += count
        return used

    def _is_ours(self, metadata: Mapping[str, Any]) -> bool:
        if OWNER_LABEL not in (metadata.get("labels") or {}):
            return False
        return self._own_namespaces is None or metadata["namespace"] in self._own_namespaces
