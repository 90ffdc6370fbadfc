"""GPUs that are promised but not yet held: replicas we asked for and the scheduler has not placed.

Without it two deployments decided one after the other would count the same free GPU. From the
decision until the API server has its workloads, a promise stands in memory alone.
"""

import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from shipfitter.cluster.kinds import WORKLOAD_KINDS
from shipfitter.cluster.queue import Key
from shipfitter.cluster.trim import OwnPod, OwnWorkload, own_workload
from shipfitter.core.capacity import NodeCapacity
from shipfitter.decide.world import Apply


class Promises:
    """Workloads that were decided and are being written, by deployment."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: dict[Key, tuple[OwnWorkload, ...]] = {}

    def make(self, key: Key, workloads: tuple[OwnWorkload, ...]) -> None:
        """Other deployments count these from now on."""
        with self._lock:
            self._made[key] = workloads

    def withdraw(self, key: Key) -> None:
        """The API server has them, or they came to nothing."""
        with self._lock:
            self._made.pop(key, None)

    def over(self, known: Iterable[OwnWorkload], *, but_for: Key) -> list[OwnWorkload]:
        """The known workloads of all other deployments, as they will be."""
        with self._lock:
            made = {
                (each.namespace, each.name): each
                for key, workloads in self._made.items()
                for each in workloads
                if key != but_for
            }
        others = {
            (each.namespace, each.name): each
            for each in known
            if (each.namespace, each.owner) != but_for
        }
        return list((others | made).values())


def promised(
    key: Key, applies: Iterable[Apply], known: Mapping[str, OwnWorkload]
) -> tuple[OwnWorkload, ...]:
    """The workloads as the manifests will leave them; `known` by name is what they change."""
    wished = dict(known)
    for each in sorted(applies, key=lambda each: each.manager != "shipfitter"):
        manifest = each.manifest
        name, spec = manifest["metadata"]["name"], manifest.get("spec") or {}
        if manifest["kind"] not in WORKLOAD_KINDS:
            continue
        if "template" in spec or "leaderWorkerTemplate" in spec:
            before = wished.get(name)
            placed = {**manifest, "metadata": {**manifest["metadata"], "namespace": key.namespace}}
            wished[name] = own_workload(placed)
            if before is not None and "replicas" not in spec:
                wished[name] = replace(wished[name], replicas=before.replicas)
        if "replicas" in spec and name in wished:
            wished[name] = replace(wished[name], replicas=int(spec["replicas"]))
    return tuple(wished.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Pods of one workload that will take GPUs as soon as they can."""

    workload: OwnWorkload
    pods: int


def held(pods: Iterable[OwnPod]) -> dict[str, dict[str, int]]:
    """Devices our bound pods hold, by node; a terminating one holds them to its end."""
    used: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for pod in pods:
        if pod.node and not pod.ended:
            for name, count in pod.gpus.items():
                used[pod.node][name] += count
    return used


def claims(workloads: Iterable[OwnWorkload], pods: Iterable[OwnPod]) -> tuple[Claim, ...]:
    """What is still to be placed: replicas without a pod, and pods without a node."""
    by_variant: dict[tuple[str, str, str], list[OwnPod]] = defaultdict(list)
    for pod in pods:
        if not pod.ended and not pod.terminating:
            by_variant[pod.namespace, pod.owner, pod.variant].append(pod)
    open_claims = []
    for workload in workloads:
        mine = by_variant[workload.namespace, workload.owner, workload.variant]
        unbound = sum(not pod.node for pod in mine)
        missing = max(0, workload.pods - len(mine))
        if workload.gpus and unbound + missing:
            open_claims.append(Claim(workload=workload, pods=unbound + missing))
    return tuple(open_claims)


def to_come(workloads: Iterable[OwnWorkload], pods: Iterable[OwnPod]) -> Counter[str]:
    """Devices that pods which are still to be made will ask for, by resource name."""
    there = Counter((pod.namespace, pod.owner, pod.variant) for pod in pods if not pod.ended)
    total: Counter[str] = Counter()
    for each in workloads:
        missing = max(0, each.pods - there[each.namespace, each.owner, each.variant])
        total.update({name: count * missing for name, count in each.gpus.items()})
    return total


def charge(nodes: Iterable[NodeCapacity], open_claims: Iterable[Claim]) -> tuple[NodeCapacity, ...]:
    """The nodes with the claims booked on the first of them that fit, by name.

    What fits nowhere is not booked: it takes nothing from anybody until there is room. Devices of a
    DRA driver stand under several names, and are booked under all of them.
    """
    booked = sorted(nodes, key=lambda node: (node.name, node.resource_name))
    for claim in sorted(
        open_claims, key=lambda each: (each.workload.namespace, each.workload.name)
    ):
        left = claim.pods
        for index, node in enumerate(booked):
            wanted = claim.workload.gpus.get(node.resource_name, 0)
            if not left or not wanted or not _may_take(node, claim.workload):
                continue
            taken = min(left, max(0, node.allocatable_gpus - node.used_gpus) // wanted)
            booked[index] = replace(node, used_gpus=node.used_gpus + taken * wanted)
            left -= taken
            if taken and node.from_slices:
                _charge_other_names(booked, node, taken * wanted)
    return tuple(booked)


def _charge_other_names(booked: list[NodeCapacity], node: NodeCapacity, devices: int) -> None:
    """Book devices of one name under the others by which the same GPUs are handed out.

    A mapped resource takes any whole GPU, so none of a kind is sure. Of partitions it is not known
    which GPU they come from: each may cost a whole one, and its share of every other profile.
    """
    for index, other in enumerate(booked):
        if other.name != node.name or not other.from_slices:
            continue
        if other.resource_name == node.resource_name or _never_the_same(node, other):
            continue
        lost = devices
        if _profile(node) and _profile(other):
            lost = -(-devices * other.allocatable_gpus // max(1, node.allocatable_gpus))
        elif _profile(other):  # whole GPUs cost all their partitions
            whole_gpus = max(1, node.allocatable_gpus)
            lost = -(-devices * other.allocatable_gpus // whole_gpus)
        booked[index] = replace(
            other, used_gpus=min(other.allocatable_gpus, other.used_gpus + lost)
        )


def _never_the_same(node: NodeCapacity, other: NodeCapacity) -> bool:
    """Claims for different products never meet; the mapped resource may be any of them."""
    products = {device.product for device in node.devices}
    return products.isdisjoint(device.product for device in other.devices)


def _profile(node: NodeCapacity) -> str:
    return node.devices[0].mig_profile if node.devices else ""


def _may_take(node: NodeCapacity, workload: OwnWorkload) -> bool:
    if not (node.ready and node.schedulable):
        return False
    if any(node.labels.get(key) != value for key, value in workload.node_selector.items()):
        return False
    terms = workload.node_affinity
    return not terms or any(_term_holds(term, node) for term in terms)


def _term_holds(term: Mapping[str, Any], node: NodeCapacity) -> bool:
    """One nodeSelectorTerm: all its expressions; an empty term selects nothing, as in the API."""
    expressions = term.get("matchExpressions") or ()
    fields = term.get("matchFields") or ()  # the API knows only metadata.name here
    if not expressions and not fields:
        return False
    name = {"metadata.name": node.name}
    return all(_holds(each, node.labels) for each in expressions) and all(
        _holds(each, name) for each in fields
    )


def _holds(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value: str | None = labels.get(expression["key"])
    values: tuple[str, ...] = tuple(expression.get("values") or ())
    operator: str = expression["operator"]
    if operator in ("In", "NotIn"):
        return (value in values) == (operator == "In")
    if operator in ("Exists", "DoesNotExist"):
        return (value is not None) == (operator == "Exists")
    if value is None or not value.isdigit() or not values:  # Gt and Lt compare numbers
        return False
    return int(value) > int(values[0]) if operator == "Gt" else int(value) < int(values[0])
