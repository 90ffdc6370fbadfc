"""ResourceSlices as NVIDIA's DRA driver publishes them; builders take only the change."""

from collections.abc import Iterable
from typing import Any

from shipfitter.core.gpus import resolve_product
from shipfitter.core.resource_slices import DRIVER, ResourceSlice, parse_slice

MEMORY_SLICES = 8  # of a GPU that can be partitioned: what its counters count


def gpu_device(name: str, product: str = "l40s", **attributes: Any) -> dict[str, Any]:
    """A whole GPU; attributes are strings, None drops one."""
    row = resolve_product(product)
    major, minor = row.compute_capability if row else (0, 0)
    found = {
        "type": {"string": "gpu"},
        "uuid": {"string": f"GPU-{name}"},
        "productName": {"string": row.aliases[0] if row else product},
        "cudaComputeCapability": {"version": f"{major}.{minor}.0"},
    } | {key: value and {"string": value} for key, value in attributes.items()}
    device: dict[str, Any] = {
        "name": name,
        "attributes": {key: value for key, value in found.items() if value},
    }
    if row and not row.unified:
        device["capacity"] = {"memory": {"value": str(row.nvml_total_bytes)}}
    return device


def mig_device(name: str, profile: str, mib: int, *, product: str = "a100-40gb") -> dict[str, Any]:
    """A MIG device."""
    device = gpu_device(name, product, type="mig", profile=profile, uuid=f"MIG-{name}")
    return device | {"capacity": {"memory": {"value": f"{mib}Mi"}}}


def placed(device: dict[str, Any], gpu: int, slices: Iterable[int]) -> dict[str, Any]:
    """The device as one that may be made of these memory slices of a GPU."""
    counters = {f"memory-slice-{number}": {"value": "1"} for number in slices}
    return device | {
        "consumesCounters": [{"counterSet": f"gpu-{gpu}-counter-set", "counters": counters}]
    }


def counter_set(gpu: int) -> dict[str, Any]:
    """What can be consumed of a GPU."""
    counters = {f"memory-slice-{n}": {"value": "1"} for n in range(MEMORY_SLICES)}
    return {"name": f"gpu-{gpu}-counter-set", "counters": counters}


def partitionable(gpu: int = 0, *, product: str = "a100-40gb") -> list[dict[str, Any]]:
    """A GPU with the partitions that could be made of it: 1g, 2g and 3g at all their placements."""
    whole = placed(gpu_device(f"gpu-{gpu}", product), gpu, range(8))
    shapes = (
        ("1g.5gb", 4_864, [(n,) for n in range(7)]),
        ("2g.10gb", 9_856, [(n, n + 1) for n in (0, 2, 4)]),
        ("3g.20gb", 19_968, [(0, 1, 2, 3), (4, 5, 6, 7)]),
    )
    return [whole] + [
        placed(
            mig_device(f"gpu-{gpu}-mig-{profile}-{slices[0]}", profile, mib, product=product),
            gpu,
            slices,
        )
        for profile, mib, placements in shapes
        for slices in placements
    ]


def slice_manifest(
    node: str, devices: Iterable[dict[str, Any]], *, generation: int = 1, **spec: Any
) -> dict[str, Any]:
    """The object, as the driver's kubelet plugin writes it."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-{DRIVER}-{generation}"},
        "spec": {
            "driver": DRIVER,
            "nodeName": node,
            "pool": {"name": node, "generation": generation, "resourceSliceCount": 1},
            "devices": list(devices),
            **spec,
        },
    }


def slices_of(node: str, devices: Iterable[dict[str, Any]], **spec: Any) -> tuple[ResourceSlice]:
    """The same as planning reads it."""
    return (parse_slice(slice_manifest(node, devices, **spec)["spec"]),)
