"""The running operator without its life cycle: caches, queue and workers, wired together."""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shipfitter.cluster.apply import Applier
from shipfitter.cluster.caches import Caches
from shipfitter.cluster.calibrations import Calibrations
from shipfitter.cluster.client import Client
from shipfitter.cluster.engines import Engines, Read
from shipfitter.cluster.events import EventPoster
from shipfitter.cluster.failures import UNREACHABLE, ApiError
from shipfitter.cluster.free_gpus import ForeignUse
from shipfitter.cluster.inspection import Inspections
from shipfitter.cluster.kept_facts import KeptFacts
from shipfitter.cluster.last_logs import LastLogs
from shipfitter.cluster.model_facts import Fetch, ModelCache
from shipfitter.cluster.node_labels import NodeLabels
from shipfitter.cluster.observe import Observer
from shipfitter.cluster.queue import Key, WorkQueue
from shipfitter.cluster.reconcile import Decide, GoneError, Pass, Reconciler
from shipfitter.cluster.verification import Verifications
from shipfitter.decide.world import Settings

WORKERS = 4
BURST_SECONDS = 0.2  # changes of one deployment's objects come in bursts; one look is enough
FAN_OUT = Key("", "")  # stands for "all of them, once the nodes are quiet"
# Nodes that never come to rest must not keep plans waiting for ever.
MOST_SETTLING_TIMES = 6
PATIENCE_GROWTH = 1.5
MOST_PATIENCE_SECONDS = 30.0

log = logging.getLogger(__name__)


class Runtime:
    """Everything that works between the API server and `decide`."""

    def __init__(
        self,
        client: Client,
        *,
        decide: Decide,
        fetch: Fetch,
        settings: Settings,
        read_engine: Read | None = None,
        namespaces: Sequence[str] = (),
        instance: str = "shipfitter",
        may_act: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._may_act = may_act
        self._clock = clock
        self.queue = WorkQueue(clock=clock)
        self.caches = Caches(
            client,
            namespaces=namespaces,
            declared=settings.declared,
            on_own_change=self._own_changed,
            on_capacity_change=self._capacity_changed,
            on_gpus_freed=self._gpus_freed,
            on_quota_change=self._quota_changed,
            on_groups=self._groups_came_or_went,
            clock=clock,
        )
        own_namespaces = frozenset(namespaces) or None
        self._node_labels = NodeLabels(client) if settings.label_nodes else None
        inspections = Inspections(
            client=client,
            image=settings.inspection_image,
            hub_endpoint=settings.hub_endpoint,
            jobs=self.caches.inspections,
            clock=clock,
        )
        self.reconciler = Reconciler(
            client=client,
            observer=Observer(
                client=client,
                caches=self.caches,
                foreign=ForeignUse(client, own_namespaces=own_namespaces, clock=clock),
                settings=settings,
                engines=Engines(read_engine, on_news=self.queue.add, clock=clock),
                last_logs=LastLogs(client, on_news=self.queue.add)
                if settings.read_pod_logs
                else None,
                calibrations=Calibrations(client, clock=clock),
                verifications=Verifications(
                    client=client, jobs=self.caches.verifications, clock=clock
                ),
            ),
            models=ModelCache(
                KeptFacts(client),
                fetch,
                endpoint=settings.hub_endpoint,
                inspections=inspections if settings.inspection_image else None,
                on_news=self.queue.add,
                clock=clock,
            ),
            applier=Applier(client, self.caches, clock=clock),
            events=EventPoster(client, instance=instance),
            decide=decide,
        )
        self._keys: dict[Key, Any] = {}  # every ModelDeployment, with what of it wakes us
        self._looking_again: set[Key] = set()  # those that wait for something
        self._quiet: dict[Key, int] = {}  # looks in a row that found nothing to do
        self._unrest_began: float | None = None
        self._unrest_ended = 0.0
        self._away = False  # the API server did not answer the last time
        self._lock = threading.Lock()
        self._workers = [
            threading.Thread(target=self._work, name=f"worker-{number}", daemon=True)
            for number in range(WORKERS)
        ]

    def start(self) -> None:
        """Watches run; workers begin when everything was seen once."""
        self.caches.start()
        if self._node_labels is not None:
            self.queue.add(FAN_OUT)  # what changed while nobody looked
        for worker in self._workers:
            worker.start()

    def stop(self, timeout_seconds: float = 3.0) -> None:
        """No new work; what is being done may end within the time."""
        self.queue.stop()
        deadline = self._clock() + timeout_seconds
        for worker in self._workers:
            if worker.is_alive():
                worker.join(max(0.0, deadline - self._clock()))
        self.caches.stop()

    def noticed(self, body: Mapping[str, Any], *, deleted: bool) -> None:
        """A ModelDeployment as an event shows it; one that differs only in status wakes nobody."""
        metadata = body["metadata"]
        key = Key(metadata["namespace"], metadata["name"])
        if deleted:
            with self._lock:
                self._keys.pop(key, None)
            self.queue.add(key)  # finds nothing, and forgets it
            return
        news = wakes(metadata)
        with self._lock:
            if self._keys.get(key) == news:
                return
            self._keys[key] = news
        self.queue.add(key)

    def _work(self) -> None:
        for watch in self.caches:
            while not watch.synced.wait(0.5):
                if self.queue.stopped:
                    return
        while not self.queue.stopped:
            key = self.queue.take(wait_seconds=5.0)
            if key is None:
                continue
            if not self._may_act():
                self.queue.done(key, again_after_seconds=1.0)
            elif key == FAN_OUT:
                self._fan_out()
            else:
                self._reconcile(key)

    def _reconcile(self, key: Key) -> None:
        self._looking_again.add(key)  # also while it decides: what changes then is not lost
        try:
            done = self.reconciler.reconcile(key)
        except GoneError:
            self.reconciler.forget(key)
            self._looking_again.discard(key)
            self._quiet.pop(key, None)
            self.queue.forget(key)
        except ApiError as error:
            wait = self.queue.failed(
                key, retry_after_seconds=error.retry_after_seconds, slowly=not error.retryable
            )
            self._tell(key, error, wait)
        except Exception:
            wait = self.queue.failed(key)
            log.exception("%s: a mistake of ours; next try in %.0f s", key, wait)
        else:
            if done.again_after_seconds is None:
                self._looking_again.discard(key)
            self._away = False
            self.queue.done(key, again_after_seconds=self._patience(key, done))

    def _patience(self, key: Key, done: Pass) -> float | None:
        """The wait a decision asked for, growing while looking again finds nothing to do.

        Changes wake a key at once; looking on the clock alone is for what only time brings.
        """
        asked = done.again_after_seconds
        quiet = 0 if done.changed or asked is None else self._quiet.get(key, 0) + 1
        self._quiet[key] = quiet
        if asked is None:
            return None
        return max(asked, min(asked * PATIENCE_GROWTH**quiet, MOST_PATIENCE_SECONDS))

    def _tell(self, key: Key, error: ApiError, wait_seconds: float) -> None:
        """A line for each failure, but one for all while the API server is away."""
        away = error.status == UNREACHABLE
        level = logging.DEBUG if away and self._away else logging.WARNING
        log.log(level, "%s: %s; next try in %.0f s", key, error.message, wait_seconds)
        self._away = away

    def _own_changed(self, key: Key) -> None:
        self.queue.add(key, after_seconds=BURST_SECONDS)

    def _capacity_changed(self, node: str) -> None:
        if not self.caches.synced:
            return  # the first sight of a node changes nothing
        now = self._clock()
        with self._lock:
            self._unrest_ended = now
            if self._unrest_began is None:
                self._unrest_began = now
                log.info("node %s: its capacity changed; plans are looked at once it rests", node)
        self.queue.add(FAN_OUT, after_seconds=self._settings.settle_seconds)

    def _fan_out(self) -> None:
        """All keys are due, unless the nodes changed again meanwhile."""
        now, settle = self._clock(), self._settings.settle_seconds
        with self._lock:
            quiet = now - self._unrest_ended
            began = self._unrest_began if self._unrest_began is not None else now
            if quiet < settle and now - began < MOST_SETTLING_TIMES * settle:
                keys, again = [], settle - quiet
            else:
                keys, again = list(self._keys), None
                self._unrest_began = None
        if again is None and self._node_labels is not None:
            self._node_labels.write(self.caches.capacity.nodes({}))
        for key in keys:
            self.queue.add(key)
        if again is None:
            self.queue.forget(FAN_OUT)
        else:
            self.queue.done(FAN_OUT, again_after_seconds=again)

    def _groups_came_or_went(self) -> None:
        self._all_due()

    def _quota_changed(self, namespace: str) -> None:
        """What waits there may have its GPUs now, or less than it was promised."""
        self._all_due(namespace, after_seconds=BURST_SECONDS)

    def _all_due(self, namespace: str = "", *, after_seconds: float = 0.0) -> None:
        """Every deployment of the namespace, or of all of them, is looked at again."""
        with self._lock:
            keys = [key for key in self._keys if namespace in ("", key.namespace)]
        for key in keys:
            self.queue.add(key, after_seconds=after_seconds)

    def _gpus_freed(self, owner: Key) -> None:
        for key in list(self._looking_again):
            if key != owner:
                self.queue.add(key, after_seconds=self._settings.settle_seconds)


def wakes(metadata: Mapping[str, Any]) -> tuple[Any, ...]:
    """What of a ModelDeployment's metadata is worth a look; its generation counts the spec."""
    return (
        metadata.get("uid"),
        metadata.get("generation"),
        metadata.get("deletionTimestamp"),
        metadata.get("labels"),
        metadata.get("annotations"),
    )
