"""A cluster's pools with their nodes, and the nodes that are in none, with the reason."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shipfitter.core.expected import ExpectedNodes, expected_pools
from shipfitter.core.inventory import NodeCapacity, Pool, PoolNode, pools


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A node whose GPUs no new pod can have."""

    node: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """A pool and the GPUs of its nodes, free or not."""

    pool: Pool
    gpus: int
    origins: tuple[str, ...] = ()  # of nodes that are not there yet: who would make them


@dataclass(frozen=True, slots=True, kw_only=True)
class Surveyed:
    """Everything the command shows."""

    pools: tuple[Counted, ...]
    left_out: tuple[LeftOut, ...]
    doubted: tuple[LeftOut, ...] = ()  # nodes whose report is not believed, and why


def surveyed(capacities: Sequence[NodeCapacity], coming: Sequence[ExpectedNodes] = ()) -> Surveyed:
    """The pools of these nodes, and of those that may come where none of their kind is there.

    GPUs that a DRA driver hands out are counted by what claims get.
    """
    offered = tuple(each for each in capacities if each.by_claim or not each.from_slices)
    by_place = {(each.name, each.resource_name): each for each in offered}
    found = [
        Counted(
            pool=pool,
            gpus=sum(len(by_place[node.name, pool.resource_name].devices) for node in pool.nodes),
        )
        for by_claim in (False, True)
        for pool in pools(tuple(each for each in offered if each.by_claim is by_claim))
    ]
    known = [each.pool for each in found]
    found += [
        Counted(pool=pool, gpus=0, origins=_origins(pool, coming))
        for pool in expected_pools(coming, capacities, known)
    ]
    members = {(node.name, each.pool.resource_name) for each in found for node in each.pool.nodes}
    left_out = {
        place[0]: LeftOut(node=place[0], reason=_reason(capacity))
        for place, capacity in by_place.items()
        if place not in members and (capacity.devices or capacity.allocatable_gpus)
    }
    doubted = {each.name: LeftOut(node=each.name, reason=each.remark) for each in offered}
    return Surveyed(
        pools=tuple(found),
        left_out=tuple(left_out[name] for name in sorted(left_out)),
        doubted=tuple(doubted[name] for name in sorted(doubted) if doubted[name].reason),
    )


def _origins(pool: Pool, coming: Sequence[ExpectedNodes]) -> tuple[str, ...]:
    same = (each.origin for each in coming if each.labels == pool.selector)
    return tuple(dict.fromkeys(same))


def _reason(node: NodeCapacity) -> str:
    """Why nothing new can go there."""
    if not node.ready:
        return "not ready"
    if not node.schedulable:
        return "cordoned, or going"
    if not node.devices:
        return "its GPUs are not known: no agent, slice or label describes them"
    if not any(device.healthy for device in node.devices):
        return "no GPU of it is healthy"
    if not any(device.total_bytes for device in node.devices):
        return "the memory of its GPUs is not known"
    return "the kubelet offers none of its GPUs"


def pools_record(found: Surveyed) -> dict[str, Any]:
    """The same facts for programs."""
    return {
        "pools": [_pool(each) for each in found.pools],
        "leftOut": [{"node": each.node, "reason": each.reason} for each in found.left_out],
        "doubted": [{"node": each.node, "reason": each.reason} for each in found.doubted],
    }


def _member(node: PoolNode) -> dict[str, Any]:
    member: dict[str, Any] = {"node": node.name, "free": node.free_gpus}
    if node.island_gpus:
        known = node.free_in_islands if node.holders_known else [None] * len(node.island_gpus)
        member["nvlinkIslands"] = [
            {"gpus": gpus, "free": free} for gpus, free in zip(node.island_gpus, known, strict=True)
        ]
    return member


def _pool(counted: Counted) -> dict[str, Any]:
    pool = counted.pool
    capability = pool.compute_capability
    return {
        "pool": pool.name,
        "product": pool.product,
        "nodes": len(pool.nodes),
        "gpus": counted.gpus,
        "free": pool.free_gpus,
        "usableBytes": pool.total_bytes,
        "nominalBytes": pool.nominal_bytes,
        "foreignUsedBytes": pool.foreign_used_bytes,
        "computeCapability": ".".join(map(str, capability)) if capability else None,
        "gpusPerNode": pool.gpus_per_node,
        "migProfile": pool.mig_profile,
        "sharing": pool.sharing,
        "replicasPerGpu": pool.replicas_per_gpu,
        "nvlink": pool.nvlink,
        "unified": pool.unified,
        "otherProducts": list(pool.other_products),
        "resourceName": pool.resource_name,
        "selector": dict(pool.selector),
        "selectorIsExact": pool.selector_is_exact,
        "source": str(pool.source),
        "confidence": pool.source.confidence,
        "expectedFrom": list(counted.origins),
        "members": [_member(each) for each in pool.nodes],
    }
