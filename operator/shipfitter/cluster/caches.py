"""All watches of one operator: what they keep, whom their changes wake, and whether they live."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from shipfitter.cluster import dra, kinds, trim
from shipfitter.cluster.autoscalers import OFFERS
from shipfitter.cluster.capacity import CapacityView
from shipfitter.cluster.client import Client
from shipfitter.cluster.inspection_state import OwnJob, own_job
from shipfitter.cluster.last_words import LastWords
from shipfitter.cluster.queue import Key
from shipfitter.cluster.quotas import NamespaceQuota, namespace_quota
from shipfitter.cluster.store import Change
from shipfitter.cluster.trim import OwnObject, OwnPod, OwnWorkload
from shipfitter.cluster.watch import Watch
from shipfitter.core.expected import ExpectedNodes
from shipfitter.core.resource_slices import ResourceSlice
from shipfitter.render import inspection_job, verify_job

# A watch that did nothing for so long hangs: even a dead API server makes it try again sooner.
HUNG_SECONDS = 300.0
OUR_JOBS = (
    f"{inspection_job.COMPONENT_LABEL} in ({inspection_job.COMPONENT},{verify_job.COMPONENT})"
)
# How soon a LeaderWorkerSet API that was installed meanwhile is noticed: somebody waits for it.
GROUPS_ABSENT_SECONDS = 10.0


class Caches:
    """Nodes and what is known of their devices, and the pods, workloads and objects of ours."""

    def __init__(
        self,
        client: Client,
        *,
        namespaces: Sequence[str] = (),
        declared: Sequence[ExpectedNodes] = (),
        on_own_change: Callable[[Key], None] = lambda key: None,
        on_capacity_change: Callable[[str], None] = lambda node: None,
        on_gpus_freed: Callable[[Key], None] = lambda key: None,
        on_quota_change: Callable[[str], None] = lambda namespace: None,
        on_groups: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._on_own_change = on_own_change
        self._on_gpus_freed = on_gpus_freed
        self.last_words = LastWords(clock=clock)
        self.nodes: Watch[dict[str, Any]] = Watch(
            client, kinds.NODE, trim.node, on_change=self._node_changed
        )
        self.gpu_nodes: Watch[dict[str, Any]] = Watch(
            client, kinds.GPU_NODE, trim.gpu_node, on_change=self._node_changed
        )
        self.slices: Watch[ResourceSlice] = Watch(
            client,
            kinds.RESOURCE_SLICE,
            dra.resource_slice,
            optional=True,
            on_change=self._slice_changed,
        )
        self.device_classes: Watch[str] = Watch(
            client,
            kinds.DEVICE_CLASS,
            dra.device_class,
            optional=True,
            on_change=self._class_changed,
        )
        self.claims: Watch[dra.HeldDevices] = Watch(
            client, kinds.RESOURCE_CLAIM, dra.resource_claim, optional=True
        )
        self.offers: list[Watch[tuple[ExpectedNodes, ...]]] = [
            Watch(
                client,
                kind,
                read,
                optional=True,
                on_change=lambda change: on_capacity_change(change.key),
            )
            for kind, read in OFFERS.items()
        ]
        self._slices_by_node = dra.SlicesByNode()
        self.capacity = CapacityView(
            node_of=self.nodes.store.value,
            gpu_node_of=self.gpu_nodes.store.value,
            slices_of=self._slices_by_node.of,
            mapped=lambda: frozenset(self.device_classes.store.items().values()),
            declared=declared,
            on_change=on_capacity_change,
        )
        places = tuple(namespaces) or ("",)
        self.pods: list[Watch[OwnPod]] = [
            Watch(
                client,
                kinds.POD,
                trim.own_pod,
                namespace=place,
                selector=kinds.OWNER_LABEL,
                on_change=self._pod_changed,
            )
            for place in places
        ]
        self.workloads: list[Watch[OwnWorkload]] = [
            Watch(
                client,
                kinds.DEPLOYMENT,
                trim.own_workload,
                namespace=place,
                selector=kinds.OWNER_LABEL,
                on_change=self._own_changed,
            )
            for place in places
        ] + [
            Watch(
                client,
                kinds.LEADER_WORKER_SET,
                trim.own_workload,
                namespace=place,
                selector=kinds.OWNER_LABEL,
                optional=True,
                absent_seconds=GROUPS_ABSENT_SECONDS,
                on_presence=on_groups,
                on_change=self._own_changed,
            )
            for place in places
        ]
        self.objects: list[Watch[OwnObject]] = [
            Watch(
                client,
                kind,
                trim.own_object,
                namespace=place,
                selector=kinds.OWNER_LABEL,
                optional=kind is kinds.CLAIM_TEMPLATE,
                on_change=self._own_changed,
            )
            for kind in (kinds.SERVICE, kinds.DISRUPTION_BUDGET, kinds.CLAIM_TEMPLATE)
            for place in places
        ]
        self.quotas: list[Watch[NamespaceQuota]] = [
            Watch(
                client,
                kinds.QUOTA,
                namespace_quota,
                namespace=place,
                optional=True,  # without the right to read them pods are refused, and that is told
                on_change=lambda change: on_quota_change(change.key.partition("/")[0]),
            )
            for place in places
        ]
        self.jobs: list[Watch[OwnJob]] = [
            Watch(
                client,
                kinds.JOB,
                own_job,
                namespace=place,
                selector=f"{kinds.OWNER_LABEL},{OUR_JOBS}",
                on_change=self._own_changed,
            )
            for place in places
        ]

    def __iter__(self) -> Iterator[Watch[Any]]:
        yield self.nodes
        yield self.gpu_nodes
        yield self.slices
        yield self.device_classes
        yield self.claims
        yield from self.offers
        yield from self.pods
        yield from self.workloads
        yield from self.objects
        yield from self.quotas
        yield from self.jobs

    def start(self) -> None:
        """Every watch runs."""
        for watch in self:
            watch.start()

    def stop(self) -> None:
        """Every watch has been told to end; none is waited for long."""
        for watch in self:
            watch.stop(timeout_seconds=0.0)

    @property
    def synced(self) -> bool:
        """True once every kind was listed whole."""
        return all(watch.synced.is_set() for watch in self)

    def hung(self) -> tuple[str, ...]:
        """Watches that died or do nothing at all."""
        now = self._clock()
        return tuple(
            watch.kind.plural
            for watch in self
            if not watch.alive or now - watch.last_activity_seconds > HUNG_SECONDS
        )

    def taken_devices(self) -> dra.Taken:
        """Devices that claims hold, whoever made them."""
        return dra.taken(self.claims.store.items().values())

    def own_pods(self) -> list[OwnPod]:
        """All pods of ours."""
        return [pod for watch in self.pods for pod in watch.store.items().values()]

    def expected_nodes(self) -> tuple[ExpectedNodes, ...]:
        """The kinds of GPU nodes that autoscalers would make, by the names of their objects."""
        offered = [watch.store.items() for watch in self.offers]
        return tuple(each for found in offered for name in sorted(found) for each in found[name])

    def own_claim_templates(self, key: Key) -> list[OwnObject]:
        """The claim templates of one deployment, by name."""
        found = [
            each
            for watch in self.objects
            if watch.kind == kinds.CLAIM_TEMPLATE
            for each in watch.store.items().values()
            if (each.namespace, each.owner) == key
        ]
        return sorted(found, key=lambda each: each.name)

    @property
    def has_groups(self) -> bool:
        """Whether the cluster can run a replica as a group of pods."""
        return any(
            watch.present for watch in self.workloads if watch.kind == kinds.LEADER_WORKER_SET
        )

    def own_workloads(self) -> list[OwnWorkload]:
        """All Deployments and LeaderWorkerSets of ours."""
        return [each for watch in self.workloads for each in watch.store.items().values()]

    def namespace_quotas(self) -> list[NamespaceQuota]:
        """The quotas that count devices."""
        return [each for watch in self.quotas for each in watch.store.items().values() if each.hard]

    def inspections(self) -> list[OwnJob]:
        """All Jobs of ours that read models."""
        return self._jobs(inspection_job.COMPONENT)

    def verifications(self) -> list[OwnJob]:
        """All Jobs of ours that put plans under load."""
        return self._jobs(verify_job.COMPONENT)

    def _jobs(self, component: str) -> list[OwnJob]:
        jobs = (job for watch in self.jobs for job in watch.store.items().values())
        return [job for job in jobs if job.component == component]

    def watches(self, kind: kinds.Kind) -> bool:
        """True where changes of that kind are heard."""
        watches: list[Watch[Any]] = [*self.workloads, *self.objects]
        return any(watch.kind == kind for watch in watches)

    def known(self, kind: kinds.Kind, namespace: str, name: str) -> OwnWorkload | OwnObject | None:
        """One object of ours as last seen."""
        watches: list[Watch[Any]] = [*self.workloads, *self.objects]
        for watch in watches:
            if watch.kind == kind and watch.namespace in ("", namespace):
                found: OwnWorkload | OwnObject | None = watch.store.value(f"{namespace}/{name}")
                if found is not None:
                    return found
        return None

    def learn(self, kind: kinds.Kind, raw: Mapping[str, Any]) -> None:
        """Take in what a write of ours returned; the next decision must not wait for the stream."""
        namespace = raw["metadata"].get("namespace", "")
        watches: list[Watch[Any]] = [*self.workloads, *self.objects]
        for watch in watches:
            if watch.kind == kind and watch.namespace in ("", namespace):
                watch.learn(raw)

    def _node_changed(self, change: Change[dict[str, Any]]) -> None:
        self.capacity.refresh(change.key)

    def _slice_changed(self, change: Change[ResourceSlice]) -> None:
        for node in sorted(self._slices_by_node.take(change)):
            self.capacity.refresh(node)

    def _class_changed(self, change: Change[str]) -> None:
        for node in sorted(self._slices_by_node.nodes()):
            self.capacity.refresh(node)

    def _own_changed(self, change: Change[Any]) -> None:
        value = change.new or change.old
        if value is not None and value.owner:
            self._on_own_change(Key(value.namespace, value.owner))

    def _pod_changed(self, change: Change[OwnPod]) -> None:
        self.last_words.take(change)
        self._own_changed(change)
        if _holds(change.old) and not _holds(change.new) and change.old is not None:
            self._on_gpus_freed(Key(change.old.namespace, change.old.owner))


def _holds(pod: OwnPod | None) -> bool:
    return pod is not None and bool(pod.node) and bool(pod.gpus) and not pod.ended
