"""Devices and nodes to pools: nodes whose GPUs are interchangeable for planning."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from shipfitter.core.capacity import CapacitySource, Device, NodeCapacity, Taint
from shipfitter.core.islands import NodeIslands, crossing
from shipfitter.core.node_classes import NodeGroup, node_groups, usable_devices
from shipfitter.core.robust import TOLERANCE_PERCENT, lower_median
from shipfitter.core.selectors import signature
from shipfitter.core.separation import Separated, separate
from shipfitter.units import GIB

__all__ = ["CapacitySource", "Device", "NodeCapacity", "Pool", "PoolNode", "Taint", "pools"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolNode:
    """A member of a pool."""

    name: str
    free_gpus: int
    island_gpus: tuple[int, ...] = ()  # of each NVLink island, where islands are known
    free_in_islands: tuple[int, ...] = ()  # the least that is free in each
    holders_known: bool = False  # which GPUs pods hold, not only how many


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Nodes whose GPUs are interchangeable: product, bytes within 3 %, count, sharing, profile."""

    name: str  # stable, a DNS label part: nvidia-l40s-8
    product: str
    gpus_per_node: int
    total_bytes: int  # per GPU, robust minimum of what CUDA calls total
    nominal_bytes: int
    foreign_used_bytes: int = 0
    compute_capability: tuple[int, int] | None = None
    nodes: tuple[PoolNode, ...] = ()
    selector: Mapping[str, str] = field(default_factory=dict)  # labels that select exactly the pool
    selector_is_exact: bool = True
    taints: tuple[Taint, ...] = ()
    source: CapacitySource = CapacitySource.MEASURED
    sharing: str = "none"
    replicas_per_gpu: int = 1
    mig_profile: str = ""
    resource_name: str = "nvidia.com/gpu"
    host_memory_bytes: int = 0
    nvlink: bool = False
    other_products: tuple[str, ...] = ()  # on the same nodes, or on nodes no label separates
    unified: bool = False
    grows: bool = False  # an autoscaler makes more nodes of this kind where pods wait for them

    @property
    def free_gpus(self) -> int:
        """GPUs free over all nodes."""
        return sum(node.free_gpus for node in self.nodes)

    def crossing(self, gpus: int, groups: int = 1) -> str:
        """What to say where groups of GPUs must talk over PCIe though there is NVLink."""
        return crossing(
            (
                NodeIslands(
                    free_gpus=node.free_gpus,
                    sizes=node.island_gpus,
                    free=node.free_in_islands,
                    is_known=node.holders_known,
                )
                for node in self.nodes
            ),
            gpus,
            groups,
        )

    def replicas_that_fit(self, gpus_per_node: int, *, nodes: int = 1) -> int:
        """Replicas the free GPUs hold now, of so many GPUs on each of so many nodes."""
        return sum(node.free_gpus // gpus_per_node for node in self.nodes) // nodes


def pools(nodes: tuple[NodeCapacity, ...]) -> tuple[Pool, ...]:
    """The pools of a cluster, ordered by name.

    Nodes that are not ready, cordoned, or without usable devices are left out. The bytes are the
    minimum over nodes within 3 % of the median of their class; an outlier becomes a pool of its
    own. Pools that no label separates are merged with the smaller bytes and
    `selector_is_exact = False`. Pass every node, also those without GPUs: selectors avoid them.
    """
    ordered = sorted(nodes, key=lambda node: (node.name, node.resource_name))
    without_gpus = frozenset(signature(node.labels) for node in ordered if not usable_devices(node))
    found = [_pool(each) for each in separate(node_groups(ordered), without_gpus)]
    return tuple(sorted(_named(found), key=lambda pool: pool.name))


def _pool(separated: Separated) -> Pool:
    """A pool of the group; what it promises holds on the smallest device of its nodes."""
    group = separated.group
    smallest = min(
        (usable_devices(node)[0] for node in group.nodes),
        key=lambda device: (device.total_bytes, device.product),
    )
    products = {product for found in group.classes for product in found.products}
    foreign_used_bytes = _foreign_used_bytes(group, smallest.total_bytes)
    return Pool(
        name="",
        product=smallest.product,
        gpus_per_node=_usual_gpus(group),
        total_bytes=smallest.total_bytes,
        nominal_bytes=smallest.nominal_bytes,
        foreign_used_bytes=foreign_used_bytes,
        compute_capability=_compute_capability(group),
        nodes=tuple(
            PoolNode(
                name=node.name,
                free_gpus=_free_gpus(node, foreign_used_bytes),
                island_gpus=tuple(island.gpus for island in node.islands),
                free_in_islands=tuple(
                    island.surely_free(node.used_gpus) for island in node.islands
                ),
                holders_known=bool(node.islands)
                and all(island.free is not None for island in node.islands),
            )
            for node in group.nodes
        ),
        selector=separated.selector,
        # On a mixed node labels select the node, but nothing selects the GPU.
        selector_is_exact=separated.selector_is_exact
        and not group.is_joined
        and len(products) == 1,
        taints=tuple(
            sorted(
                {taint for node in group.nodes for taint in node.taints},
                key=lambda taint: (taint.key, taint.value, taint.effect),
            )
        ),
        source=max((node.source for node in group.nodes), key=list(CapacitySource).index),
        sharing=max(
            (found.sharing for found in group.classes), key=("none", "mps", "time-slicing").index
        ),
        replicas_per_gpu=max(found.replicas_per_gpu for found in group.classes),
        mig_profile=smallest.mig_profile,
        resource_name=group.resource_name,
        host_memory_bytes=min(node.host_memory_bytes for node in group.nodes),
        nvlink=2 * sum(node.nvlink for node in group.nodes) > len(group.nodes),
        other_products=tuple(sorted(products - {smallest.product})),
        unified=smallest.unified,
    )


def _usual_gpus(group: NodeGroup) -> int:
    """The number of GPUs most nodes have; the scheduler counts those of each node itself."""
    nodes_by_gpus = Counter(len(node.devices) for node in group.nodes)
    return max(nodes_by_gpus, key=lambda gpus: (nodes_by_gpus[gpus], gpus))


def _foreign_used_bytes(group: NodeGroup, total_bytes: int) -> int:
    """What strangers hold on a usual node: the most within the tolerance above the median."""
    used_bytes = [
        max(device.foreign_used_bytes for device in usable_devices(node)) for node in group.nodes
    ]
    usual_bytes = lower_median(used_bytes) + total_bytes * TOLERANCE_PERCENT // 100
    return max(used for used in used_bytes if used <= usual_bytes)


def _free_gpus(node: NodeCapacity, foreign_used_bytes: int) -> int:
    """GPUs the node can hand out now that offer what the pool promises."""
    fitting = sum(
        device.foreign_used_bytes <= foreign_used_bytes for device in usable_devices(node)
    )
    requestable = min(node.allocatable_gpus, fitting * node.replicas_per_gpu)
    return max(0, requestable - node.used_gpus)


def _compute_capability(group: NodeGroup) -> tuple[int, int] | None:
    """The lowest that most nodes have, so that one node's claim moves nothing; None if unknown."""
    lowest = Counter(
        min(known)
        for node in group.nodes
        if (known := [d.compute_capability for d in usable_devices(node) if d.compute_capability])
    )
    if len(group.classes) > 1:
        return min(lowest, default=None)
    return max(lowest, key=lambda capability: (lowest[capability], capability), default=None)


def _named(found: list[Pool]) -> Iterable[Pool]:
    """Pools with names; of pools that differ only in bytes the largest keeps the plain one."""
    taken: set[str] = set()
    for pool in sorted(found, key=lambda p: (-len(p.nodes), -p.total_bytes, p.nodes[0].name)):
        plain = plain_name(pool)
        sized = f"{plain}-{round(pool.total_bytes / GIB)}g"
        numbered = (f"{sized}-{number}" for number in range(2, len(found) + 2))
        name = next(name for name in (plain, sized, *numbered) if name not in taken)
        taken.add(name)
        yield replace(pool, name=name)


def plain_name(pool: Pool) -> str:
    """What a person would call the pool, as a part of a DNS label."""
    arch = pool.selector.get("kubernetes.io/arch", "amd64")
    parts = (
        pool.product,
        f"mig-{pool.mig_profile}" if pool.mig_profile else "",
        str(pool.gpus_per_node),
        f"{pool.sharing}-{pool.replicas_per_gpu}" if pool.sharing != "none" else "",
        "mixed" if pool.other_products else "",
        arch if arch != "amd64" else "",
    )
    return re.sub(r"[^a-z0-9]+", "-", "-".join(filter(None, parts)).lower()).strip("-")[:50]
