"""Clusters of every kind, made from a number: the same number is the same cluster always.

Nodes as Kubernetes objects, with what their agents wrote, what pods hold and slices of DRA drivers:
mixed products, MIG, time-slicing, cordoned and dying nodes, agents that are silent or lie.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from builders_nodes import PLATFORM, gpu, gpu_labels, gpunode, node
from builders_slices import gpu_device, slices_of
from shipfitter.core.capacity import NodeCapacity
from shipfitter.core.gpus import resolve_product
from shipfitter.core.node_capacity import node_capacities
from shipfitter.core.resource_slices import ResourceSlice
from shipfitter.units import MIB

PRODUCTS = ("l4", "l40s", "a100-40gb", "a100-80gb", "h100", "h200", "4090", "rtx-pro-6000")
SPOT = {"key": "spot", "value": "yes", "effect": "NoSchedule"}
GPU_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
A_SLICE = {"a100-40gb": ("3g.20gb", 19_968), "a100-80gb": ("1g.10gb", 9_856)}
LIES = (0.5, 0.7, 1.3, 1.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A node, what its agent wrote, and what pods hold of it."""

    node: dict[str, Any]
    gpu_node: dict[str, Any] | None = None
    used: Mapping[str, int] = field(default_factory=dict)
    slices: tuple[ResourceSlice, ...] = ()
    taken: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        return str(self.node["metadata"]["name"])


def cluster(seed: int, prefix: str = "") -> tuple[Machine, ...]:
    """One to four kinds of nodes, one to five nodes of each; names begin with the prefix."""
    chance = Random(seed)
    machines: list[Machine] = []
    for kind in range(chance.randint(1, 4)):
        make = chance.choices(
            (_plain, _mixed, _sliced, _shared, _by_claim), weights=(10, 2, 2, 2, 2)
        )[0]
        product = chance.choice(PRODUCTS)
        count = chance.choice((1, 2, 4, 8))
        labelled = chance.choice(("all", "all", "product", "cloud", "none"))
        machines += [
            make(chance, f"{prefix}k{kind}-{number}", product, count, labelled)
            for number in range(chance.randint(1, 5))
        ]
    return tuple(machines)


def capacities(machines: tuple[Machine, ...]) -> tuple[NodeCapacity, ...]:
    """The cluster as planning sees it."""
    return tuple(
        capacity
        for machine in machines
        for capacity in node_capacities(
            machine.node,
            machine.gpu_node,
            machine.used,
            slices=machine.slices,
            taken=machine.taken,
        )
    )


def _plain(chance: Random, name: str, product: str, count: int, labelled: str) -> Machine:
    raw = _node(chance, name, _labels(product, count, labelled), gpus=count)
    used = {"nvidia.com/gpu": chance.choice((0, 0, 0, count // 2, count))}
    silent = labelled != "none" and chance.random() < 0.3
    return Machine(
        node=raw,
        gpu_node=None if silent else _measured(chance, name, (product,) * count),
        used=used,
    )


def _mixed(chance: Random, name: str, product: str, count: int, _: str) -> Machine:
    other = chance.choice(PRODUCTS)
    products = (product,) * count + (other,)
    raw = _node(chance, name, PLATFORM, gpus=len(products))
    return Machine(node=raw, gpu_node=_measured(chance, name, products))


def _sliced(chance: Random, name: str, product: str, count: int, _: str) -> Machine:
    """Whole GPUs and partitioned ones side by side."""
    product = product if product in A_SLICE else "a100-40gb"
    profile, mib = A_SLICE[product]
    slices = [
        {"uuid": f"MIG-{name}-{number}", "profile": profile, "memoryBytes": mib * MIB}
        for number in range(2)
    ]
    parted = gpu(product, uuid=f"GPU-{name}-p", migEnabled=True, migDevices=slices)
    gpus = (*(gpu(product, uuid=f"GPU-{name}-{n}") for n in range(count)), parted)
    raw = _node(
        chance,
        name,
        _labels(product, count + 1, "all"),
        gpus=count,
        resources={f"nvidia.com/mig-{profile}": "2"},
    )
    used = {f"nvidia.com/mig-{profile}": chance.choice((0, 1)), "nvidia.com/gpu": 0}
    return Machine(node=raw, gpu_node=gpunode(name, gpus=gpus), used=used)


def _shared(chance: Random, name: str, product: str, count: int, _: str) -> Machine:
    labels = _labels(product, count, "all") | {
        "nvidia.com/gpu.sharing-strategy": "time-slicing",
        "nvidia.com/gpu.replicas": "4",
    }
    raw = _node(chance, name, labels, gpus=4 * count)
    return Machine(node=raw, used={"nvidia.com/gpu": chance.randint(0, 2)})


def _by_claim(chance: Random, name: str, product: str, count: int, _: str) -> Machine:
    devices = [gpu_device(f"gpu-{number}", product) for number in range(count)]
    devices.append(gpu_device(f"gpu-{count}", chance.choice(PRODUCTS)))
    taken = {device["name"] for device in devices if chance.random() < 0.3}
    return Machine(
        node=_node(chance, name, PLATFORM),
        slices=slices_of(name, devices),
        taken=frozenset(taken),
    )


def _node(chance: Random, name: str, labels: Mapping[str, str], **facts: Any) -> dict[str, Any]:
    taints = [GPU_TAINT] if chance.random() < 0.5 else []
    taints += [SPOT] if chance.random() < 0.1 else []
    raw = node(name, labels=labels, taints=taints, **facts)
    if chance.random() < 0.1:
        raw["spec"]["unschedulable"] = True
    if chance.random() < 0.1:
        raw["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    return raw


def _labels(product: str, count: int, labelled: str) -> dict[str, str]:
    row = resolve_product(product)
    assert row is not None
    if labelled == "all":
        return gpu_labels(row.product, count)
    if labelled == "product":
        return PLATFORM | {"nvidia.com/gpu.product": row.product}
    if labelled == "cloud":
        return PLATFORM | {"node.kubernetes.io/instance-type": f"own-{row.product}-{count}"}
    return dict(PLATFORM)


def _measured(chance: Random, name: str, products: tuple[str, ...]) -> dict[str, Any]:
    """What the agent wrote; driver branches differ by less than 1 %, and a few GPUs are broken."""
    jitter = 1 - chance.choice((0, 0, 0.002, 0.005))
    gpus = []
    for number, product in enumerate(products):
        row = resolve_product(product)
        assert row is not None
        state = "Unhealthy" if chance.random() < 0.03 else "Healthy"
        total_bytes = int(row.nvml_total_bytes * jitter) // MIB * MIB
        gpus.append(
            gpu(
                product,
                uuid=f"GPU-{name}-{number}",
                memory={"totalBytes": total_bytes},
                health={"state": state, "reason": "" if state == "Healthy" else "Xid79"},
            )
        )
    islands = [list(range(len(products)))] if len(products) > 1 and chance.random() < 0.5 else []
    return dict(gpunode(name, gpus=tuple(gpus), nvlinkIslands=islands))


def lying(machine: Machine, factor: float) -> Machine:
    """The same machine whose agent tells of other memory."""
    assert machine.gpu_node is not None
    gpus = [
        {
            **each,
            "memory": {**each["memory"], "totalBytes": int(each["memory"]["totalBytes"] * factor)},
        }
        for each in machine.gpu_node["status"]["gpus"]
    ]
    told = {**machine.gpu_node, "status": {**machine.gpu_node["status"], "gpus": gpus}}
    return Machine(node=machine.node, gpu_node=told, used=machine.used)
