"""Nodes for tests: as Kubernetes objects and as capacities; builders take only the change."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from shipfitter.core.capacity import Device, NodeCapacity
from shipfitter.core.gpus import resolve_product
from shipfitter.units import GIB

PLATFORM = {"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"}


def device(product: str = "NVIDIA-L40S", **changes: Any) -> Device:
    """A device as the catalogue describes the product."""
    row = resolve_product(product)
    assert row is not None
    made = Device(
        product=row.product,
        total_bytes=row.cuda_total_bytes,
        nominal_bytes=row.nvml_total_bytes,
        compute_capability=row.compute_capability,
    )
    return replace(made, **changes)


def gpu_labels(product: str = "NVIDIA-L40S", count: int = 8, **more: str) -> dict[str, str]:
    """What gpu-feature-discovery would label such a node with."""
    row = resolve_product(product)
    memory = {"nvidia.com/gpu.memory": str(row.nvml_total_bytes // 2**20)} if row else {}
    labels = {"nvidia.com/gpu.product": product, "nvidia.com/gpu.count": str(count)}
    return PLATFORM | labels | memory | more


def capacity(
    name: str = "n1", product: str = "NVIDIA-L40S", count: int = 8, **changes: Any
) -> NodeCapacity:
    """A node with free GPUs of one product."""
    made = NodeCapacity(
        name=name,
        labels=gpu_labels(product, count),
        devices=(device(product),) * count,
        allocatable_gpus=count,
        host_memory_bytes=512 * GIB,
    )
    return replace(made, **changes)


def node(
    name: str = "n1",
    *,
    labels: Mapping[str, str] = PLATFORM,
    gpus: int = 0,
    resources: Mapping[str, str] | None = None,
    memory: str = "512Gi",
    **spec: Any,
) -> dict[str, Any]:
    """A Node as the API server has it."""
    allocatable = {"cpu": "64", "memory": memory, **(resources or {})}
    if gpus:
        allocatable["nvidia.com/gpu"] = str(gpus)
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": dict(labels)},
        "spec": spec,
        "status": {
            "allocatable": allocatable,
            "capacity": {"memory": "512Gi"},
            "conditions": [{"type": "Ready", "status": "True"}],
            "nodeInfo": {"bootID": "boot-1"},
        },
    }


def gpunode(name: str = "n1", gpus: tuple[Mapping[str, Any], ...] = (), **status: Any) -> Any:
    """A GPUNode as its agent wrote it."""
    return {
        "metadata": {"name": name, "ownerReferences": [{"kind": "Node", "uid": f"uid-{name}"}]},
        "status": {
            "bootId": "boot-1",
            "driver": {"version": "580.95.05", "cuda": "13.0"},
            "gpus": list(gpus),
            "nvlinkIslands": [],
            "conditions": [{"type": "NVMLReady", "status": "True"}],
            **status,
        },
    }


def gpu(product: str = "NVIDIA-L40S", **changes: Any) -> dict[str, Any]:
    """One GPU of a GPUNode."""
    row = resolve_product(product)
    assert row is not None
    major, minor = row.compute_capability
    memory = {
        "kind": "dedicated",
        "totalBytes": row.nvml_total_bytes,
        "reservedBytes": row.reserved_bytes,
        "foreignUsedBytes": 0,
    }
    return {
        "uuid": "GPU-1",
        "product": row.product,
        "computeCapability": f"{major}.{minor}",
        "memory": memory | changes.pop("memory", {}),
        "migEnabled": False,
        "health": {"state": "Healthy", "reason": ""},
        **changes,
    }
