"""Nodes that are not there yet: what somebody declares, or an autoscaler would make, as pools.

Their labels are those a pod can ask for before the node exists; what gpu-feature-discovery will
write on it is not among them, for no autoscaler knows that.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from shipfitter.core.capacity import CapacitySource, Device, NodeCapacity, Taint
from shipfitter.core.inventory import Pool, plain_name
from shipfitter.core.node_classes import is_available, usable_devices
from shipfitter.core.spellings import Resolved

MOST_GPUS_PER_NODE = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedNodes:
    """One kind of node that may come: its labels, and the GPUs it will have."""

    found: Resolved
    gpus_per_node: int
    labels: Mapping[str, str]
    taints: tuple[Taint, ...] = ()
    origin: str = "declared"  # who says so: declared, or an autoscaler's object

    @property
    def device(self) -> Device:
        """One GPU of such a node, as the catalogue has it."""
        row, usable_bytes = self.found.row, self.found.usable_bytes
        return Device(
            product=row.product,
            total_bytes=usable_bytes,
            nominal_bytes=usable_bytes if self.found.mig_profile else row.nvml_total_bytes,
            compute_capability=row.compute_capability,
            mig_profile=self.found.mig_profile,
            unified=row.unified,
        )


def declared_device(declared: Iterable[ExpectedNodes], labels: Mapping[str, str]) -> Device | None:
    """What is declared of a node with these labels, for one that nobody describes."""
    return next((each.device for each in declared if _matches(each, labels)), None)


def expected_pools(
    expected: Iterable[ExpectedNodes], nodes: Iterable[NodeCapacity], known: Iterable[Pool]
) -> tuple[Pool, ...]:
    """A pool for every kind of node of which none is there; `known` are the pools that are.

    A node of the kind that is there tells better what such nodes offer. So does a pool of the same
    name: when the first node comes, the plan made for the expected pool stands on the real one.
    """
    there = [node for node in nodes if is_available(node) and usable_devices(node)]
    taken = {pool.name for pool in known}
    found: dict[str, Pool] = {}
    for each in expected:
        if any(_matches(each, node.labels) for node in there):
            continue
        pool = _pool(each)
        if pool.name not in taken:
            found.setdefault(pool.name, pool)
    return tuple(found[name] for name in sorted(found))


def growing(expected: Iterable[ExpectedNodes], nodes: Iterable[NodeCapacity], pool: Pool) -> bool:
    """Whether more nodes of a pool that is there may come: one of its nodes is of such a kind."""
    members = {node.name for node in pool.nodes}
    labels = [node.labels for node in nodes if node.name in members]
    return any(_matches(each, found) for each in expected for found in labels)


def _matches(expected: ExpectedNodes, labels: Mapping[str, str]) -> bool:
    return all(labels.get(key) == value for key, value in expected.labels.items())


def _pool(expected: ExpectedNodes) -> Pool:
    device = expected.device
    pool = Pool(
        name="",
        product=device.product,
        gpus_per_node=expected.gpus_per_node,
        total_bytes=device.total_bytes,
        nominal_bytes=device.nominal_bytes,
        compute_capability=device.compute_capability,
        selector=dict(expected.labels),
        taints=expected.taints,
        source=CapacitySource.EXPECTED,
        mig_profile=device.mig_profile,
        nvlink=expected.found.row.nvlink and not device.mig_profile,
        unified=device.unified,
    )
    return replace(pool, name=plain_name(pool))
