"""What running engines report of themselves: each asked once for each start, off the main road."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from shipfitter.cluster.queue import Key
from shipfitter.cluster.trim import OwnPod
from shipfitter.status.pods import ObservedEngine

RETRY_SECONDS = 30.0
ASKED_AT_ONCE = 4
MOST_KEPT = 10_000  # starts remembered; beyond that the oldest go

Read = Callable[[str], ObservedEngine | None]
Start = tuple[str, str, int]  # namespace, pod, restarts


@dataclass(slots=True)
class _Answer:
    engine: ObservedEngine | None = None
    asked: bool = False
    retry_at: float = 0.0


class Engines:
    """The answers of engines, by start."""

    def __init__(
        self,
        read: Read | None,
        *,
        on_news: Callable[[Key], None] = lambda key: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read = read
        self._on_news = on_news
        self._clock = clock
        self._lock = threading.Lock()
        self._slots = threading.BoundedSemaphore(ASKED_AT_ONCE)
        self._answers: dict[Start, _Answer] = {}

    def said(self, pod: OwnPod) -> ObservedEngine | None:
        """What a Ready pod's engine said; asked for now where it was not yet."""
        if self._read is None or not pod.ready or not pod.address or not pod.serves:
            return None
        start = (pod.namespace, pod.name, pod.restarts)
        with self._lock:
            answer = self._answers.setdefault(start, _Answer())
            due = answer.engine is None and not answer.asked and self._clock() >= answer.retry_at
            if due:
                answer.asked = True
            while len(self._answers) > MOST_KEPT:
                self._answers.pop(next(iter(self._answers)))
        if due:
            threading.Thread(
                target=self._ask, args=(pod, answer), name="engine", daemon=True
            ).start()
        return answer.engine

    def _ask(self, pod: OwnPod, answer: _Answer) -> None:
        assert self._read is not None
        with self._slots:
            engine = self._read(pod.address)
        with self._lock:
            answer.engine, answer.asked = engine, False
            answer.retry_at = self._clock() + RETRY_SECONDS
        if engine is not None:
            self._on_news(Key(pod.namespace, pod.owner))
