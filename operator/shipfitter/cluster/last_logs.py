"""The log of an engine that ended, where its last words lack the cause: read once for each end.

Only where the chart grants pods/log. Off the main road: until the log is here, nobody decides by
words that are known to be too few.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import replace

from shipfitter.cluster.client import Client
from shipfitter.cluster.failures import ApiError
from shipfitter.cluster.kinds import POD
from shipfitter.cluster.queue import Key
from shipfitter.cluster.trim import OwnPod
from shipfitter.core.engine_log import read_last_words

TAIL_LINES = 1500  # the cause lies before a front's traceback and the shutdown's lines
MOST_BYTES = 512 * 1024
ASKED_AT_ONCE = 2
MOST_KEPT = 1000  # ends remembered; beyond that the oldest go
NEVER_RAN_BEFORE = 400  # the answer where a container has no run before this one

End = tuple[str, str, int]  # namespace, pod, restarts

log = logging.getLogger(__name__)


class LastLogs:
    """What ended engines wrote, by end."""

    def __init__(self, client: Client, *, on_news: Callable[[Key], None]) -> None:
        self._client = client
        self._on_news = on_news
        self._lock = threading.Lock()
        self._slots = threading.BoundedSemaphore(ASKED_AT_ONCE)
        self._read: dict[End, str | None] = {}  # None: on its way

    def told(self, pod: OwnPod) -> OwnPod:
        """The pod with its log for last words where those lack the cause and the log has it."""
        if not _is_vague(pod):
            return pod
        end = (pod.namespace, pod.name, pod.restarts)
        with self._lock:
            first = end not in self._read
            text = self._read.setdefault(end, None)
            while len(self._read) > MOST_KEPT:
                self._read.pop(next(iter(self._read)))
        if first:
            threading.Thread(
                target=self._fetch, args=(pod, end), name="last-log", daemon=True
            ).start()
        if text is None:
            return replace(pod, exit_code=None, ended_reason="")
        return replace(pod, termination_message=text) if text else pod

    def _fetch(self, pod: OwnPod, end: End) -> None:
        with self._slots:
            text = self._log(pod)
        words = read_last_words(text, pod.exit_code, pod.ended_reason)
        with self._lock:
            self._read[end] = text if words is not None and words.is_memory else ""
        self._on_news(Key(pod.namespace, pod.owner))

    def _log(self, pod: OwnPod) -> str:
        """Of the run that ended; empty where it cannot be had."""
        path = POD.path(pod.namespace, pod.name, "log")
        query = {"container": pod.container, "tailLines": TAIL_LINES, "limitBytes": MOST_BYTES}
        for previous in ("true", "false"):
            try:
                return self._client.text(path, query={**query, "previous": previous})
            except ApiError as error:
                if error.status != NEVER_RAN_BEFORE or previous == "false":
                    log.warning("%s/%s: its log: %s", pod.namespace, pod.name, error.message)
                    return ""
        return ""


def _is_vague(pod: OwnPod) -> bool:
    """Whether the engine ended badly and only its front was heard."""
    if pod.ready or pod.exit_code in (None, 0):
        return False
    refusal = read_last_words(pod.termination_message, pod.exit_code, pod.ended_reason)
    return refusal is not None and refusal.may_be_memory
