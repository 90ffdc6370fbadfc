"""A Node and what is known of its GPUs, as capacity: the most trusted source that knows decides."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from shipfitter.core.capacity import CapacitySource, Device, NodeCapacity
from shipfitter.core.gpus import bare_product, resolve_product
from shipfitter.core.islands import Island, islands_of
from shipfitter.core.measured import (
    MIG_RESOURCE_PREFIX,
    disbelief,
    measured_devices,
    nvlink_connects_all,
)
from shipfitter.core.node_state import (
    allocatable,
    host_memory_bytes,
    in_force,
    labels,
    nvml_ready,
    sees_all_gpus,
    without_devices,
)
from shipfitter.core.published import (
    Sharing,
    evidently_shared,
    labelled_total_bytes,
    published_devices,
    sharing,
)
from shipfitter.core.quantities import whole
from shipfitter.core.resource_slices import ResourceSlice, sliced_devices
from shipfitter.core.sliced_capacity import sliced_capacities

GPU_RESOURCE = "nvidia.com/gpu"
SHARED_GPU_RESOURCE = "nvidia.com/gpu.shared"  # the device plugin's renameByDefault


def node_capacity(
    node: Mapping[str, Any],
    gpunode: Mapping[str, Any] | None,
    used_gpus: int,
    *,
    resource_name: str | None = None,
    declared: Device | None = None,
    stale: bool = False,
    slices: Collection[ResourceSlice] = (),
) -> NodeCapacity:
    """What a node offers under one resource name; its first one by default.

    Order of trust: what the node's agent measured, the DRA driver's ResourceSlices,
    gpu-feature-discovery's labels, a provider's label or the instance type with the catalogue, and
    at last what the user declares for such nodes. Allocatable decides how many may be requested.
    `stale` says that the agent is silent: its measurement then holds only for the same boot and
    driver of the same machine.
    """
    resource_name = resource_name or gpu_resources(node)[0]
    bare = without_devices(node, resource_name)
    shared = sharing(bare.labels, resource_name)
    devices, source, remark = _devices(
        node,
        gpunode,
        resource_name,
        _physical(bare.allocatable_gpus, shared),
        stale=stale,
        slices=slices,
    )
    if source in _COUNTED and (gpunode is None or sees_all_gpus(gpunode)):
        shared = evidently_shared(shared, devices, bare.allocatable_gpus)
    if not devices and declared and bare.allocatable_gpus:
        devices = (declared,) * _physical(bare.allocatable_gpus, shared)
        source = CapacitySource.DECLARED
    return replace(
        bare,
        devices=tuple(_less_what_the_host_keeps(device, node) for device in devices),
        used_gpus=used_gpus,
        source=source,
        remark=remark,
        sharing=shared.strategy,
        replicas_per_gpu=shared.replicas_per_gpu,
        nvlink=_nvlink(devices, gpunode if source in _MEASUREMENTS else None),
        islands=_islands(gpunode, source, resource_name, shared),
    )


def node_capacities(
    node: Mapping[str, Any],
    gpunode: Mapping[str, Any] | None,
    used: Mapping[str, int],
    *,
    declared: Device | None = None,
    stale: bool = False,
    slices: Collection[ResourceSlice] = (),
    taken: Collection[str] = (),
    mapped: Collection[str] = (),
) -> tuple[NodeCapacity, ...]:
    """One capacity for every GPU resource the node hands out, `used` by resource name.

    A node whose GPUs only a DRA driver hands out has them in its `slices`: `taken` are the devices
    that claims hold there, `mapped` the extended resources that device classes stand for.
    """
    if slices and not any(whole(allocatable(node).get(name)) for name in gpu_resources(node)):
        return tuple(
            replace(
                each,
                devices=tuple(_less_what_the_host_keeps(device, node) for device in each.devices),
            )
            for each in sliced_capacities(
                node, gpunode, slices, taken=taken, mapped=mapped, stale=stale
            )
        )
    return tuple(
        node_capacity(
            node,
            gpunode,
            used.get(resource_name, 0),
            resource_name=resource_name,
            declared=declared,
            stale=stale,
            slices=slices,
        )
        for resource_name in gpu_resources(node)
    )


def gpu_resources(node: Mapping[str, Any]) -> tuple[str, ...]:
    """The GPU resources a node hands out, whole GPUs first; never none, so that it has a name."""
    offered = allocatable(node)
    names = (
        GPU_RESOURCE,
        SHARED_GPU_RESOURCE,
        *sorted(name for name in offered if name.startswith(MIG_RESOURCE_PREFIX)),
    )
    return tuple(name for name in names if whole(offered.get(name))) or (GPU_RESOURCE,)


_COUNTED = (CapacitySource.MEASURED, CapacitySource.STALE, CapacitySource.LABEL)
_MEASUREMENTS = (CapacitySource.MEASURED, CapacitySource.STALE)


def _devices(
    node: Mapping[str, Any],
    gpunode: Mapping[str, Any] | None,
    resource_name: str,
    at_least: int,
    *,
    stale: bool,
    slices: Collection[ResourceSlice],
) -> tuple[tuple[Device, ...], CapacitySource, str]:
    """The devices, who told of them, and what was told and is not believed."""
    remark = ""
    if gpunode is not None:
        stale = stale or not nvml_ready(gpunode)
        measured = measured_devices(gpunode.get("status") or {}, resource_name)
        if any(device.total_bytes for device in measured) and in_force(node, gpunode, stale=stale):
            believed = tuple(_no_more_than_labelled(device, labels(node)) for device in measured)
            if _agree(believed, labels(node)):
                source = CapacitySource.STALE if stale else CapacitySource.MEASURED
                return believed, source, disbelief(gpunode.get("status") or {})
            remark = (
                f"its agent tells of {believed[0].product}, its label of "
                f"{labels(node).get('nvidia.com/gpu.product')}: the label is believed"
            )
    sliced = sliced_devices(slices, resource_name, host_memory_bytes(node))
    if sliced:
        return sliced, CapacitySource.RESOURCE_SLICE, remark
    published = published_devices(
        labels(node),
        resource_name,
        host_memory_bytes=host_memory_bytes(node),
        at_least=at_least,
    )
    if published:
        return published.devices, published.source, remark
    return (), CapacitySource.CATALOGUE, remark


def _agree(devices: tuple[Device, ...], labels: Mapping[str, str]) -> bool:
    """Whether the product label, which no agent can write, names one of the products measured."""
    label, _, _ = bare_product(labels.get("nvidia.com/gpu.product", ""))
    row = resolve_product(label)
    return not label or any(
        device.product == label or (row is not None and resolve_product(device.product) is row)
        for device in devices
    )


def _no_more_than_labelled(device: Device, labels: Mapping[str, str]) -> Device:
    """A device the catalogue does not know, held to the label where it claims 5 % more."""
    labelled_bytes = labelled_total_bytes(labels)
    if (
        resolve_product(device.product)
        or device.mig_profile
        or not labelled_bytes
        or device.nominal_bytes * 100 <= labelled_bytes * 105
    ):
        return device
    reserved_bytes = device.nominal_bytes - device.total_bytes
    return replace(
        device, nominal_bytes=labelled_bytes, total_bytes=max(0, labelled_bytes - reserved_bytes)
    )


def _less_what_the_host_keeps(device: Device, node: Mapping[str, Any]) -> Device:
    """Unified memory: what the kubelet does not give to pods is taken on the GPU too."""
    allocatable_bytes = whole(allocatable(node).get("memory"))
    if not device.unified or not allocatable_bytes:
        return device
    kept_bytes = max(0, device.total_bytes - allocatable_bytes)
    return replace(device, foreign_used_bytes=max(device.foreign_used_bytes, kept_bytes))


def _physical(allocatable_gpus: int, shared: Sharing) -> int:
    return -(-allocatable_gpus // shared.replicas_per_gpu)


def _islands(
    gpunode: Mapping[str, Any] | None, source: CapacitySource, resource_name: str, shared: Sharing
) -> tuple[Island, ...]:
    """The islands of whole GPUs; a share or a slice of one has none."""
    whole_gpus = resource_name == GPU_RESOURCE and shared.strategy == "none"
    if gpunode is None or source not in _MEASUREMENTS or not whole_gpus:
        return ()
    current = source is CapacitySource.MEASURED
    return islands_of(gpunode.get("status") or {}, current=current)


def _nvlink(devices: tuple[Device, ...], gpunode: Mapping[str, Any] | None) -> bool:
    if gpunode is not None:
        return nvlink_connects_all(gpunode.get("status") or {})
    rows = [resolve_product(device.product) for device in devices if not device.mig_profile]
    return len(rows) > 1 and all(row is not None and row.nvlink for row in rows)
