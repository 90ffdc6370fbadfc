"""Which pods should go first when replicas are taken away: those that free a whole node soonest."""

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping

from shipfitter.core.inventory import NodeCapacity
from shipfitter.decide.world import LivePod


def deletion_costs(
    pods: Iterable[LivePod], nodes: Iterable[NodeCapacity], variants: Iterable[str]
) -> Mapping[str, int]:
    """The costs to write, by pod: the GPUs in use on its node; none while the order stands.

    A ReplicaSet takes away pods of the lowest cost first, so nodes that hold little are emptied and
    full ones stay full. Pods of one node are alike.
    Source: Kubernetes, annotation controller.kubernetes.io/pod-deletion-cost.
    """
    used: Counter[str] = Counter()
    for node in nodes:
        used[node.name] += node.used_gpus
    placed = [pod for pod in pods if pod.node and pod.gpus and not pod.terminating]
    costs: dict[str, int] = {}
    for variant in variants:
        own = [pod for pod in placed if pod.variant == variant]
        if not _in_order(own, used):
            costs |= {pod.name: used[pod.node] for pod in own if pod.cost != used[pod.node]}
    return costs


def _in_order(pods: list[LivePod], used: Mapping[str, int]) -> bool:
    """Whether the pods on emptier nodes are the cheaper ones already."""
    levels: dict[int, list[int]] = {}
    for pod in pods:
        levels.setdefault(used[pod.node], []).append(pod.cost)
    ordered = [levels[level] for level in sorted(levels)]
    return all(max(one) < min(next_) for one, next_ in itertools.pairwise(ordered))
