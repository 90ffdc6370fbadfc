"""What a node's own agent measured, as devices; nothing of it is believed without a look."""

import re
from collections.abc import Collection, Mapping
from typing import Any

from shipfitter.core.capacity import Device
from shipfitter.core.gpus import (
    GpuProduct,
    assumed_reserved_bytes,
    is_implausible,
    normalise_product,
    resolve_product,
)
from shipfitter.core.mig import same_profile
from shipfitter.units import GIB, format_gib

MIG_RESOURCE_PREFIX = "nvidia.com/mig-"

# More than any card has; a larger claim is no measurement.
_MOST_BYTES = 2048 * GIB
# No driver keeps a tenth of a card: such a figure is no measurement either.
_MOST_RESERVED_SHARE = 10


def measured_devices(status: Mapping[str, Any], resource_name: str) -> tuple[Device, ...]:
    """The devices behind a resource name; none where the agent could not see them.

    Whole GPUs back `nvidia.com/gpu`, unless all are partitioned (the plugin's single strategy):
    then their MIG devices do. A partitioned GPU itself is never a device.
    """
    gpus = [gpu for gpu in status.get("gpus") or () if isinstance(gpu, Mapping)]
    if resource_name.startswith(MIG_RESOURCE_PREFIX):
        profile = resource_name.removeprefix(MIG_RESOURCE_PREFIX)
        return tuple(d for d in _mig_devices(gpus) if same_profile(d.mig_profile, profile))
    whole_gpus = tuple(_gpu_device(gpu) for gpu in gpus if not gpu.get("migEnabled"))
    return whole_gpus or _mig_devices(gpus)


def disbelief(status: Mapping[str, Any]) -> str:
    """What of a report cannot be, in words; empty where all of it can."""
    for gpu in status.get("gpus") or ():
        product = normalise_product(str(gpu.get("product", "")))
        row, nominal_bytes = (
            resolve_product(product),
            _natural((gpu.get("memory") or {}).get("totalBytes")),
        )
        if row and not row.unified and is_implausible(row, nominal_bytes):
            return (
                f"its agent tells {format_gib(nominal_bytes)} of {product}, which is sold with "
                f"{format_gib(row.nominal_bytes)}: taken for that"
            )
    return ""


def measured_by_uuid(status: Mapping[str, Any]) -> dict[str, Device]:
    """The same devices by their identifiers, whole GPUs and MIG devices alike."""
    found: dict[str, Device] = {}
    for gpu in status.get("gpus") or ():
        if not isinstance(gpu, Mapping):
            continue
        if gpu.get("migEnabled"):
            uuids = [str(mig.get("uuid")) for mig in gpu.get("migDevices") or ()]
            found.update(zip(uuids, _mig_devices([gpu]), strict=True))
        else:
            found[str(gpu.get("uuid"))] = _gpu_device(gpu)
    return found


def nvlink_connects_all(status: Mapping[str, Any], uuids: Collection[str] | None = None) -> bool:
    """Whether one NVLink island holds every GPU of the node, or all of those asked for."""
    gpus = [str(gpu.get("uuid")) for gpu in status.get("gpus") or ()]
    places = {place for place, uuid in enumerate(gpus) if uuids is None or uuid in uuids}
    return len(places) > 1 and any(
        places <= set(island) for island in status.get("nvlinkIslands") or ()
    )


def _gpu_device(gpu: Mapping[str, Any]) -> Device:
    product = normalise_product(str(gpu.get("product", "")))
    row = resolve_product(product)
    memory = gpu.get("memory") or {}
    unified = memory.get("kind") == "unified"
    nominal_bytes, total_bytes = _totals(memory, row, unified=unified)
    return Device(
        product=product,
        total_bytes=total_bytes,
        nominal_bytes=nominal_bytes,
        foreign_used_bytes=min(_natural(memory.get("foreignUsedBytes")), total_bytes),
        compute_capability=_compute_capability(gpu) or (row.compute_capability if row else None),
        healthy=(gpu.get("health") or {}).get("state", "Healthy") == "Healthy",
        unified=unified,
    )


def _totals(memory: Mapping[str, Any], row: GpuProduct | None, *, unified: bool) -> tuple[int, int]:
    """NVML's total and CUDA's; the catalogue fills what is missing and replaces the implausible."""
    nominal_bytes = _natural(memory.get("totalBytes"))
    if row and (nominal_bytes == 0 or is_implausible(row, nominal_bytes)):
        return row.nvml_total_bytes, row.cuda_total_bytes
    if unified:
        return nominal_bytes, nominal_bytes
    reserved_bytes = memory.get("reservedBytes")
    if reserved_bytes is None or _natural(reserved_bytes) * _MOST_RESERVED_SHARE > nominal_bytes:
        reserved_bytes = assumed_reserved_bytes(row, nominal_bytes)
    return nominal_bytes, max(0, nominal_bytes - _natural(reserved_bytes))


def _mig_devices(gpus: list[Mapping[str, Any]]) -> tuple[Device, ...]:
    """The MIG devices of all GPUs; one never offers more than its GPU is sold with."""
    devices = []
    for gpu in gpus:
        product = normalise_product(str(gpu.get("product", "")))
        row = resolve_product(product)
        healthy = (gpu.get("health") or {}).get("state", "Healthy") == "Healthy"
        for mig in gpu.get("migDevices") or ():
            memory_bytes = _natural(mig.get("memoryBytes"))
            if row:
                memory_bytes = min(memory_bytes, row.nvml_total_bytes)
            devices.append(
                Device(
                    product=product,
                    total_bytes=memory_bytes,
                    nominal_bytes=memory_bytes,
                    compute_capability=_compute_capability(gpu)
                    or (row.compute_capability if row else None),
                    mig_profile=str(mig.get("profile", "")),
                    healthy=healthy,
                )
            )
    return tuple(devices)


def _compute_capability(gpu: Mapping[str, Any]) -> tuple[int, int] | None:
    found = re.fullmatch(r"(\d{1,2})\.(\d)", str(gpu.get("computeCapability", "")))
    return (int(found[1]), int(found[2])) if found else None


def _natural(value: object) -> int:
    """A byte count that can be one; 0 for anything else."""
    return value if isinstance(value, int) and 0 <= value <= _MOST_BYTES else 0
