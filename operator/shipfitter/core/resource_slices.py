"""ResourceSlices of NVIDIA's DRA driver as devices: exact for each GPU, but without its reserve.

Source: kubernetes-sigs/dra-driver-nvidia-gpu, cmd/gpu-kubelet-plugin (attributes and capacity of a
device), and the resource.k8s.io/v1 API (pools, generations, counters, taints).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from shipfitter.core.capacity import Device
from shipfitter.core.gpus import (
    assumed_reserved_bytes,
    is_implausible,
    normalise_product,
    resolve_product,
)
from shipfitter.core.measured import MIG_RESOURCE_PREFIX
from shipfitter.core.mig import same_profile
from shipfitter.core.quantities import whole

DRIVER = "gpu.nvidia.com"
GPU, MIG = "gpu", "mig"  # what a device is; the rest (vfio) is for virtual machines

Counters = Mapping[tuple[str, str], int]  # (counter set, counter) → how much of it


@dataclass(frozen=True, slots=True, kw_only=True)
class SlicedDevice:
    """One device of a slice; partitions of one GPU consume the same counters."""

    name: str  # as allocations name it
    kind: str  # gpu | mig
    product: str
    uuid: str = ""
    total_bytes: int = 0  # as published: NVML's total, 0 where the driver has no figure
    compute_capability: tuple[int, int] | None = None
    mig_profile: str = ""
    unified: bool = False
    healthy: bool = True
    consumes: Counters = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceSlice:
    """A slice as planning reads it; one of another driver has no node and no devices."""

    node: str = ""
    pool: str = ""
    generation: int = 0
    slices_in_pool: int = 0
    devices: tuple[SlicedDevice, ...] = ()
    counters: Counters = field(default_factory=dict)


def parse_slice(spec: Mapping[str, Any]) -> ResourceSlice:
    """The spec of a ResourceSlice; empty for other drivers and for devices bound to no one node."""
    if spec.get("driver") != DRIVER or not spec.get("nodeName"):
        return ResourceSlice()
    pool = spec.get("pool") or {}
    devices = (_device(raw) for raw in spec.get("devices") or ())
    return ResourceSlice(
        node=str(spec["nodeName"]),
        pool=str(pool.get("name", "")),
        generation=whole(pool.get("generation")),
        slices_in_pool=whole(pool.get("resourceSliceCount")),
        devices=tuple(device for device in devices if device),
        counters={
            (str(each.get("name", "")), str(name)): whole((counter or {}).get("value"))
            for each in spec.get("sharedCounters") or ()
            for name, counter in (each.get("counters") or {}).items()
        },
    )


def current(slices: Iterable[ResourceSlice]) -> tuple[ResourceSlice, ...]:
    """The slices in force: of every pool the newest generation, once all of it is there.

    The scheduler takes nothing from a pool of which a slice is missing.
    """
    pools: dict[str, list[ResourceSlice]] = {}
    for each in slices:
        if each.node:
            pools.setdefault(each.pool, []).append(each)
    found: list[ResourceSlice] = []
    for members in pools.values():
        newest = max(each.generation for each in members)
        fresh = [each for each in members if each.generation == newest]
        if len(fresh) >= max(each.slices_in_pool for each in fresh):
            found += fresh
    return tuple(found)


def device_of(sliced: SlicedDevice, host_memory_bytes: int = 0) -> Device | None:
    """What an engine could use of it; None where neither slice nor catalogue knows its bytes.

    A GPU's published memory is NVML's total: the driver's reserve is the catalogue's estimate. A
    partition's memory is all its own.
    """
    row = resolve_product(sliced.product)
    nominal_bytes = total_bytes = sliced.total_bytes
    unified = sliced.unified or bool(row and row.unified)
    if unified and host_memory_bytes:
        nominal_bytes = total_bytes = host_memory_bytes
    elif sliced.kind == MIG:
        if row:
            nominal_bytes = total_bytes = min(total_bytes, row.nvml_total_bytes)
    elif row and (not nominal_bytes or is_implausible(row, nominal_bytes)):
        nominal_bytes, total_bytes = row.nvml_total_bytes, row.cuda_total_bytes
    else:
        total_bytes = max(0, nominal_bytes - assumed_reserved_bytes(row, nominal_bytes))
    if not total_bytes:
        return None
    return Device(
        product=sliced.product,
        total_bytes=total_bytes,
        nominal_bytes=nominal_bytes,
        compute_capability=sliced.compute_capability or (row.compute_capability if row else None),
        mig_profile=sliced.mig_profile,
        healthy=sliced.healthy,
        unified=unified,
    )


def sliced_devices(
    slices: Iterable[ResourceSlice], resource_name: str, host_memory_bytes: int = 0
) -> tuple[Device, ...]:
    """The devices behind an extended resource of the same node, as its slices describe them.

    As with a measurement, MIG devices stand behind the plain resource only where no GPU is whole.
    Possible partitions of one GPU (they share its counters) are none that a plugin hands out.
    """
    devices = [device for each in slices for device in each.devices]
    if resource_name.startswith(MIG_RESOURCE_PREFIX):
        profile = resource_name.removeprefix(MIG_RESOURCE_PREFIX)
        wanted = [d for d in devices if d.kind == MIG and same_profile(d.mig_profile, profile)]
    else:
        wanted = [d for d in devices if d.kind == GPU] or [d for d in devices if d.kind == MIG]
    fixed = [device for device in wanted if device.kind == GPU or not device.consumes]
    found = (device_of(device, host_memory_bytes) for device in fixed)
    return tuple(device for device in found if device)


def _device(raw: Mapping[str, Any]) -> SlicedDevice | None:
    attributes = _unqualified(raw.get("attributes"))
    capacity = _unqualified(raw.get("capacity"))
    kind = _string(attributes.get("type")) or GPU
    product = normalise_product(_string(attributes.get("productName")))
    if kind not in (GPU, MIG) or not product:
        return None
    return SlicedDevice(
        name=str(raw.get("name", "")),
        kind=kind,
        product=product,
        uuid=_string(attributes.get("uuid")),
        total_bytes=whole((capacity.get("memory") or {}).get("value")),
        compute_capability=_version(attributes.get("cudaComputeCapability")),
        mig_profile=_string(attributes.get("profile")) if kind == MIG else "",
        unified=_string(attributes.get("memoryType")) == "unified",
        healthy=not any(
            taint.get("effect") in ("NoSchedule", "NoExecute") for taint in raw.get("taints") or ()
        ),
        consumes={
            (str(each.get("counterSet", "")), str(name)): whole((counter or {}).get("value"))
            for each in raw.get("consumesCounters") or ()
            for name, counter in (each.get("counters") or {}).items()
        },
    )


def _unqualified(named: Mapping[str, Any] | None) -> dict[str, Any]:
    """Attributes by their bare names: the driver's own domain may be written or not."""
    return {name.removeprefix(f"{DRIVER}/"): value for name, value in (named or {}).items()}


def _string(attribute: Mapping[str, Any] | None) -> str:
    return str((attribute or {}).get("string") or "")


def _version(attribute: Mapping[str, Any] | None) -> tuple[int, int] | None:
    """Major and minor of a semantic version: "9.0.0" is (9, 0)."""
    parts = str((attribute or {}).get("version") or "").split(".")
    if len(parts) < 2 or not all(part.isdecimal() for part in parts[:2]):
        return None
    return int(parts[0]), int(parts[1])
