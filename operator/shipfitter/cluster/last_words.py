"""The last words of pods that are gone: a group restarts whole, and takes its pods' words along.

A pod of a Deployment keeps its words through its restarts; one of a group is deleted and made anew
as soon as any of them ends, often before anybody looked.
"""

import threading
import time
from collections import deque
from collections.abc import Callable

from shipfitter.cluster.queue import Key
from shipfitter.cluster.store import Change
from shipfitter.cluster.trim import OwnPod

KEPT_SECONDS = 300.0  # longer than any wait between two attempts of recovery
MOST_KEPT = 500


class LastWords:
    """Pods of ours that ended badly by themselves and are gone, for a while."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._ended: dict[tuple[str, str, str], OwnPod] = {}  # still there
        self._gone: deque[tuple[float, OwnPod]] = deque(maxlen=MOST_KEPT)

    def take(self, change: Change[OwnPod]) -> None:
        """Note a pod whose engine ends with an error unasked, and keep it once it is gone."""
        old, new = change.old, change.new
        with self._lock:
            if new is not None and new.exit_code not in (None, 0) and not new.terminating:
                self._ended[_incarnation(new)] = new
            if old is None or (new is not None and _incarnation(new) == _incarnation(old)):
                return
            pod = self._ended.pop(_incarnation(old), None)
            if pod is not None:
                self._gone.append((self._clock(), pod))

    def of(self, key: Key) -> list[OwnPod]:
        """Those of one deployment, the last first."""
        with self._lock:
            since = self._clock() - KEPT_SECONDS
            return [
                pod
                for when, pod in reversed(self._gone)
                if when >= since and (pod.namespace, pod.owner) == key
            ]


def _incarnation(pod: OwnPod) -> tuple[str, str, str]:
    """Pods of a group keep their names when they are made anew."""
    return pod.namespace, pod.name, pod.created
