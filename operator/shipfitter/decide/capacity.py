"""Which nodes count for one deployment, with its own GPUs counted as free."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from shipfitter.api.model_deployment import Allocation, ModelDeployment
from shipfitter.core.expected import ExpectedNodes, expected_pools, growing
from shipfitter.core.inventory import NodeCapacity, Pool, Taint, pools
from shipfitter.core.islands import given_back
from shipfitter.core.plan import VariantPlan
from shipfitter.decide.world import LivePod, World

# Taints that say "GPU node"; every rendered pod tolerates them.
GPU_TAINTS = ("nvidia.com/gpu", "sku", "cloud.google.com/gke-accelerator")


def pools_for(resource: ModelDeployment, world: World) -> tuple[Pool, ...]:
    """The pools this deployment could use: nodes it selects and tolerates, own GPUs given back."""
    own: Counter[tuple[str, str]] = Counter()
    for pod in world.pods:
        own[pod.node, pod.gpu_resource] += pod.gpus
    selected = (node for node in world.nodes if _usable(resource, node))
    found = pools(tuple(_without_own(node, own) for node in selected))
    coming = _expected(resource, world)
    grown = tuple(replace(pool, grows=growing(coming, world.nodes, pool)) for pool in found)
    return (*grown, *expected_pools(coming, world.nodes, found))


def _without_own(node: NodeCapacity, own: Mapping[tuple[str, str], int]) -> NodeCapacity:
    """The node with our GPUs counted as free, of the resource that our pods asked for."""
    returned = own.get((node.name, node.resource_name), 0) + own.get((node.name, ""), 0)
    if not returned:
        return node
    return replace(
        node,
        used_gpus=max(0, node.used_gpus - returned),
        islands=given_back(node.islands, returned),
    )


def _expected(resource: ModelDeployment, world: World) -> tuple[ExpectedNodes, ...]:
    """The kinds of nodes that may come; claims cannot ask for them, for no slice tells of them."""
    if resource.spec.gpus.allocation is Allocation.DRA:
        return ()
    return tuple(
        each
        for each in (*world.settings.declared, *world.expected)
        if all(
            each.labels.get(key, value) == value
            for key, value in resource.spec.placement.node_selector.items()
        )
        and all(_tolerated(resource, taint) for taint in each.taints)
    )


def elsewhere(resource: ModelDeployment, world: World) -> str:
    """What to say where GPUs are there, but only for the other way to ask for them."""
    allocation = resource.spec.gpus.allocation
    if allocation is Allocation.DRA and not world.has_claims:
        return (
            "this cluster does not serve resource.k8s.io/v1 (Kubernetes does from 1.34 on), so no "
            "claim can take a GPU: set spec.gpus.allocation to DevicePlugin"
        )
    if not any(node.devices for node in world.nodes):
        return ""
    if allocation is Allocation.DRA:
        if any(node.by_claim for node in world.nodes):
            return ""
        return (
            "no node publishes its GPUs as ResourceSlices, so no claim can take one: "
            "set spec.gpus.allocation to DevicePlugin"
        )
    if not all(node.by_claim for node in world.nodes if node.devices):
        return ""
    return (
        "all GPUs here are handed out by claims alone: set spec.gpus.allocation to DRA, or let a "
        "DeviceClass stand for nvidia.com/gpu (extendedResourceName)"
    )


def _usable(resource: ModelDeployment, node: NodeCapacity) -> bool:
    if node.by_claim != (resource.spec.gpus.allocation is Allocation.DRA):
        return False
    wanted = resource.spec.placement.node_selector.items()
    if any(node.labels.get(key) != value for key, value in wanted):
        return False
    return all(_tolerated(resource, taint) for taint in node.taints)


def _tolerated(resource: ModelDeployment, taint: Taint) -> bool:
    if taint.effect == "PreferNoSchedule" or taint.key in GPU_TAINTS:
        return True
    return any(
        (not t.key or t.key == taint.key)
        and (t.operator == "Exists" or t.value == taint.value)
        and (not t.effect or t.effect == taint.effect)
        for t in resource.spec.placement.tolerations
    )


def held_by_pool(variants: Mapping[str, VariantPlan], replicas: Iterable[LivePod]) -> Counter[str]:
    """How many replicas of a plan have GPUs, by pool; `variants` by name."""
    return Counter(
        variants[pod.variant].sizing.pool.name
        for pod in replicas
        if pod.variant in variants and pod.node and pod.gpus and not pod.terminating
    )


def stranded(pods: Iterable[LivePod]) -> bool:
    """Whether nothing runs because the scheduler finds no GPU for any pod."""
    live = [pod for pod in pods if not pod.terminating]
    return bool(live) and all(pod.waiting_for_gpu_since is not None for pod in live)
