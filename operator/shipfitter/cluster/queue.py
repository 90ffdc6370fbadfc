"""Work by key: each key once, one worker per key, growing waits after failures, and a steady round.

Nothing here starts threads or sleeps: `take` hands out what is due, the caller brings the workers.
"""

import heapq
import random
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from shipfitter.cluster.backoff import Backoff

FIRST_RETRY_SECONDS = 1.0
MOST_RETRY_SECONDS = 300.0
RESYNC_SECONDS = 600.0  # every key is looked at again in this time, ± 20 %


class Key(NamedTuple):
    """A ModelDeployment."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class WorkQueue:
    """Keys and when each is due; the earliest wish for a key wins."""

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        chance: random.Random | None = None,
        resync_seconds: float = RESYNC_SECONDS,
    ) -> None:
        self._clock = clock
        self._chance = chance or random.Random()
        self._resync_seconds = resync_seconds
        self._changed = threading.Condition()
        self._due: dict[Key, float] = {}
        self._heap: list[tuple[float, Key]] = []  # may hold outdated entries; `_due` is the truth
        self._working: dict[Key, float | None] = {}  # value: due again, asked for meanwhile
        self._backoffs: dict[Key, Backoff] = {}
        self._stopped = False

    def add(self, key: Key, *, after_seconds: float = 0.0) -> None:
        """The key is due then, or sooner where that was known already."""
        with self._changed:
            self._want(key, self._clock() + after_seconds)

    def take(self, *, wait_seconds: float = 0.0) -> Key | None:
        """A due key nobody works on, now marked as worked on; None where none comes in time."""
        deadline = self._clock() + wait_seconds
        with self._changed:
            while not self._stopped:
                now = self._clock()
                key = self._pop(now)
                if key is not None:
                    return key
                if now >= deadline:
                    return None
                next_due = self._heap[0][0] if self._heap else deadline
                self._changed.wait(max(0.0, min(next_due, deadline) - now))
        return None

    def done(self, key: Key, *, again_after_seconds: float | None = None) -> None:
        """The work succeeded; the key rests until asked for, or for the steady round."""
        resync = self._resync_seconds * self._chance.uniform(0.8, 1.2)
        rest = resync if again_after_seconds is None else min(resync, again_after_seconds)
        with self._changed:
            self._backoffs.pop(key, None)
            self._finish(key, rest)

    def failed(
        self, key: Key, *, retry_after_seconds: float | None = None, slowly: bool = False
    ) -> float:
        """The work failed and is due again after the returned seconds, or as soon as asked for.

        `slowly`: somebody must change something first, so the waits start long.
        """
        with self._changed:
            backoff = self._backoffs.get(key)
            if backoff is None:
                first = 60.0 if slowly else FIRST_RETRY_SECONDS
                backoff = Backoff(
                    first_seconds=first, most_seconds=MOST_RETRY_SECONDS, chance=self._chance
                )
                self._backoffs[key] = backoff
            wait = backoff.next_seconds(retry_after_seconds)
            self._finish(key, wait)
            return wait

    def forget(self, key: Key) -> None:
        """The key exists no more: no round, no retry; what was asked for meanwhile still counts."""
        with self._changed:
            self._backoffs.pop(key, None)
            self._due.pop(key, None)
            again = self._working.pop(key, None)
            if again is not None:
                self._want(key, again)

    def stop(self) -> None:
        """Nothing is handed out any more; whoever waits in `take` gets None."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    @property
    def stopped(self) -> bool:
        """True after `stop`."""
        return self._stopped

    @property
    def busy(self) -> int:
        """Keys being worked on."""
        return len(self._working)

    @property
    def waiting(self) -> int:
        """Keys that are due and that nobody works on."""
        now = self._clock()
        with self._changed:
            return sum(due <= now for due in self._due.values())

    def _want(self, key: Key, due: float) -> None:
        if key in self._working:
            asked = self._working[key]
            self._working[key] = due if asked is None else min(asked, due)
        elif due < self._due.get(key, float("inf")):
            self._due[key] = due
            heapq.heappush(self._heap, (due, key))
            self._changed.notify()

    def _finish(self, key: Key, rest_seconds: float) -> None:
        asked = self._working.pop(key, None)
        due = self._clock() + rest_seconds
        self._want(key, due if asked is None else min(asked, due))

    def _pop(self, now: float) -> Key | None:
        while self._heap:
            due, key = self._heap[0]
            if self._due.get(key) != due:
                heapq.heappop(self._heap)
                continue
            if due > now:
                return None
            heapq.heappop(self._heap)
            del self._due[key]
            self._working[key] = None
            return key
        return None
