"""The Events a kubelet posts about a pod; they are for people, so a lost one is no error."""

import contextlib
import queue
import threading
import time
import uuid
from collections.abc import Mapping
from typing import Any

from world.nodes.api import WEATHER, Api, ApiError
from world.nodes.status import stamp

MESSAGE_BYTES = 1024


class Events:
    """Posts in the background, in order."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._queue: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="events", daemon=True)

    def start(self) -> None:
        """Begin to post."""
        self._thread.start()

    def stop(self) -> None:
        """Post what is waiting, then end."""
        self._queue.put(None)
        self._thread.join()

    def post(
        self,
        pod: Mapping[str, Any],
        reason: str,
        message: str,
        *,
        container: str = "",
        kind: str = "Normal",
    ) -> None:
        """An Event about a pod, or one of its containers."""
        metadata = pod["metadata"]
        involved = {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "uid": metadata["uid"],
        }
        if container:
            involved["fieldPath"] = f"spec.containers{{{container}}}"
        now = stamp(time.time())
        self._queue.put(
            {
                "metadata": {
                    "name": f"{metadata['name'][:200]}.{uuid.uuid4().hex[:16]}",
                    "namespace": metadata["namespace"],
                },
                "involvedObject": involved,
                "type": kind,
                "reason": reason,
                "message": message[:MESSAGE_BYTES],
                "source": {"component": "kubelet", "host": pod["spec"].get("nodeName", "")},
                "firstTimestamp": now,
                "lastTimestamp": now,
                "count": 1,
            }
        )

    def _run(self) -> None:
        while (event := self._queue.get()) is not None:
            path = f"/api/v1/namespaces/{event['metadata']['namespace']}/events"
            with contextlib.suppress(ApiError, *WEATHER):
                self._api.post(path, event)
