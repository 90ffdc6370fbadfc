"""Nodes without a cluster: imagined from a product's name, or read from a file."""

from pathlib import Path
from typing import Any

import yaml

from shipfitter.core.gpus import nearest_products, resolve_product
from shipfitter.core.inventory import CapacitySource, Device, NodeCapacity
from shipfitter.core.node_capacity import node_capacity
from shipfitter.errors import InvalidSpecError
from shipfitter.units import GIB, MIB

IMAGINED_HOST_MEMORY_BYTES = 512 * GIB


def imagined_nodes(gpus: list[str]) -> tuple[NodeCapacity, ...]:
    """One free node for each PRODUCT[:COUNT].

    Raises InvalidSpecError naming every spelling that is not known, with the nearest names.
    """
    problems: list[str] = []
    nodes = []
    for number, text in enumerate(gpus, start=1):
        product, _, count = text.partition(":")
        row = resolve_product(product)
        if row is None:
            near = ", ".join(nearest_products(product))
            hint = f"did you mean {near}?" if near else "write it as in NVIDIA-L40S:8"
            problems.append(f"--gpu {product}: not in the catalogue; {hint}")
        elif count and not (count.isdigit() and 0 < int(count) <= 64):
            problems.append(f"--gpu {text}: the count is a number from 1 to 64, got {count!r}")
        else:
            nodes.append(_imagined(f"imagined-{number}", row.product, int(count or 1)))
    if problems:
        raise InvalidSpecError(tuple(problems))
    return tuple(nodes)


def _imagined(name: str, product: str, count: int) -> NodeCapacity:
    row = resolve_product(product)
    assert row is not None
    device = Device(
        product=row.product,
        total_bytes=row.cuda_total_bytes,
        nominal_bytes=row.nvml_total_bytes,
        compute_capability=row.compute_capability,
    )
    return NodeCapacity(
        name=name,
        labels={
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/os": "linux",
            "nvidia.com/gpu.product": row.product,
            "nvidia.com/gpu.count": str(count),
            "nvidia.com/gpu.memory": str(row.nvml_total_bytes // MIB),
        },
        devices=(device,) * count,
        allocatable_gpus=count,
        source=CapacitySource.CATALOGUE,
        host_memory_bytes=IMAGINED_HOST_MEMORY_BYTES,
        nvlink=row.nvlink,
    )


def read_nodes(path: Path) -> tuple[NodeCapacity, ...]:
    """The nodes of a file of Node and GPUNode objects, single or in Lists; all GPUs count as free.

    Raises InvalidSpecError when it cannot be read or holds no Node.
    """
    try:
        documents = list(yaml.safe_load_all(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise InvalidSpecError((f"--nodes {path}: {error.strerror}",)) from error
    except yaml.YAMLError as error:
        raise InvalidSpecError((f"--nodes {path}: not YAML: {error}",)) from error
    objects = [item for document in documents for item in _items(document)]
    gpu_nodes = {o["metadata"]["name"]: o for o in objects if o.get("kind") == "GPUNode"}
    nodes = [o for o in objects if o.get("kind") == "Node"]
    if not nodes:
        raise InvalidSpecError(
            (f"--nodes {path}: holds no Node; write it with kubectl get nodes,gpunodes -o yaml",)
        )
    return tuple(node_capacity(node, gpu_nodes.get(node["metadata"]["name"]), 0) for node in nodes)


def _items(document: Any) -> list[dict[str, Any]]:
    if not isinstance(document, dict):
        return []
    items = document.get("items")
    return items if isinstance(items, list) else [document]
