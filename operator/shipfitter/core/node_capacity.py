"""A Node and what its agent wrote, as capacity: the most trusted source that knows decides."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from shipfitter.core.capacity import CapacitySource, Device, NodeCapacity, Taint
from shipfitter.core.gpus import bare_product, resolve_product
from shipfitter.core.measured import MIG_RESOURCE_PREFIX, measured_devices, nvlink_connects_all
from shipfitter.core.published import (
    Sharing,
    labelled_total_bytes,
    published_devices,
    sharing,
)
from shipfitter.core.quantities import whole

GPU_RESOURCE = "nvidia.com/gpu"
SHARED_GPU_RESOURCE = "nvidia.com/gpu.shared"  # the device plugin's renameByDefault

# Whoever carries one of these takes no new pods, whatever they tolerate.
# Source: the taints of node controller, cluster-autoscaler and Karpenter.
_LEAVING_TAINTS = (
    "node.cloudprovider.kubernetes.io/",
    "node.kubernetes.io/",
    "ToBeDeletedByClusterAutoscaler",
    "karpenter.sh/disrupt",
)


def node_capacity(
    node: Mapping[str, Any],
    gpunode: Mapping[str, Any] | None,
    used_gpus: int,
    *,
    resource_name: str | None = None,
    declared: Device | None = None,
    stale: bool = False,
) -> NodeCapacity:
    """What a node offers under one resource name; its first one by default.

    Order of trust: what the node's agent measured, gpu-feature-discovery's labels, a provider's
    label or the instance type with the catalogue, and at last what the user declares for such
    nodes. Allocatable decides how many may be requested. `stale` says that the agent is silent:
    its measurement then holds only for the same boot and driver of the same machine.
    """
    status = node.get("status") or {}
    labels = _metadata(node).get("labels") or {}
    resource_name = resource_name or gpu_resources(node)[0]
    allocatable_gpus = whole((status.get("allocatable") or {}).get(resource_name))
    host_memory_bytes = whole((status.get("capacity") or {}).get("memory"))
    shared = sharing(labels, resource_name)
    devices, source = _devices(
        node, gpunode, resource_name, _physical(allocatable_gpus, shared), stale=stale
    )
    if not devices and declared and allocatable_gpus:
        devices = (declared,) * _physical(allocatable_gpus, shared)
        source = CapacitySource.DECLARED
    taints = _taints(node)
    leaving = [t for t in taints if t.key.startswith(_LEAVING_TAINTS)]
    return NodeCapacity(
        name=str(_metadata(node).get("name", "")),
        labels=labels,
        devices=tuple(_less_what_the_host_keeps(device, status) for device in devices),
        allocatable_gpus=allocatable_gpus,
        used_gpus=used_gpus,
        ready=_is_ready(status),
        schedulable=not (node.get("spec") or {}).get("unschedulable")
        and not _metadata(node).get("deletionTimestamp")
        and all(taint.effect == "PreferNoSchedule" for taint in leaving),
        taints=tuple(taint for taint in taints if taint not in leaving),
        source=source,
        sharing=shared.strategy,
        replicas_per_gpu=shared.replicas_per_gpu,
        resource_name=resource_name,
        host_memory_bytes=host_memory_bytes,
        nvlink=_nvlink(devices, gpunode if source in _MEASUREMENTS else None),
    )


def node_capacities(
    node: Mapping[str, Any],
    gpunode: Mapping[str, Any] | None,
    used: Mapping[str, int],
    *,
    declared: Device | None = None,
    stale: bool = False,
) -> tuple[NodeCapacity, ...]:
    """One capacity for every GPU resource the node hands out, `used` by resource name."""
    return tuple(
        node_capacity(
            node,
            gpunode,
            used.get(resource_name, 0),
            resource_name=resource_name,
            declared=declared,
            stale=stale,
        )
        for resource_name in gpu_resources(node)
    )


def gpu_resources(node: Mapping[str, Any]) -> tuple[str, ...]:
    """The GPU resources a node hands out, whole GPUs first; never none, so that it has a name."""
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    names = (
        GPU_RESOURCE,
        SHARED_GPU_RESOURCE,
        *sorted(name for name in allocatable if name.startswith(MIG_RESOURCE_PREFIX)),
    )
    return tuple(name for name in names if whole(allocatable.get(name))) or (GPU_RESOURCE,)


_MEASUREMENTS = (CapacitySource.MEASURED, CapacitySource.STALE)


def _devices(
    node: Mapping[str, Any],
    gpunode: Mapping[str, Any] | None,
    resource_name: str,
    at_least: int,
    *,
    stale: bool,
) -> tuple[tuple[Device, ...], CapacitySource]:
    labels = _metadata(node).get("labels") or {}
    if gpunode is not None:
        stale = stale or not _nvml_ready(gpunode)
        measured = measured_devices(gpunode.get("status") or {}, resource_name)
        if any(device.total_bytes for device in measured) and _in_force(node, gpunode, stale=stale):
            believed = tuple(_no_more_than_labelled(device, labels) for device in measured)
            if _agree(believed, labels):
                return believed, CapacitySource.STALE if stale else CapacitySource.MEASURED
    published = published_devices(
        labels,
        resource_name,
        host_memory_bytes=whole(((node.get("status") or {}).get("capacity") or {}).get("memory")),
        at_least=at_least,
    )
    if published:
        return published.devices, published.source
    return (), CapacitySource.CATALOGUE


def _in_force(node: Mapping[str, Any], gpunode: Mapping[str, Any], *, stale: bool) -> bool:
    """Whether a measurement is of this machine, and, when the agent is silent, of this boot."""
    uid = _metadata(node).get("uid")
    owners = [owner.get("uid") for owner in _metadata(gpunode).get("ownerReferences") or ()]
    if uid and owners and uid not in owners:
        return False
    if not stale:
        return True
    status = gpunode.get("status") or {}
    boot_id = ((node.get("status") or {}).get("nodeInfo") or {}).get("bootID")
    driver = (_metadata(node).get("labels") or {}).get("nvidia.com/cuda.driver-version.full")
    return boot_id in (None, "", status.get("bootId")) and driver in (
        None,
        "",
        (status.get("driver") or {}).get("version"),
    )


def _nvml_ready(gpunode: Mapping[str, Any]) -> bool:
    return all(
        condition.get("status") == "True"
        for condition in (gpunode.get("status") or {}).get("conditions") or ()
        if condition.get("type") == "NVMLReady"
    )


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


def _less_what_the_host_keeps(device: Device, status: Mapping[str, Any]) -> Device:
    """Unified memory: what the kubelet does not give to pods is taken on the GPU too."""
    allocatable_bytes = whole((status.get("allocatable") or {}).get("memory"))
    if not device.unified or not allocatable_bytes:
        return device
    kept_bytes = max(0, device.total_bytes - allocatable_bytes)
    return replace(device, foreign_used_bytes=max(device.foreign_used_bytes, kept_bytes))


def _physical(allocatable_gpus: int, shared: Sharing) -> int:
    return -(-allocatable_gpus // shared.replicas_per_gpu)


def _nvlink(devices: tuple[Device, ...], gpunode: Mapping[str, Any] | None) -> bool:
    if gpunode is not None:
        return nvlink_connects_all(gpunode.get("status") or {})
    rows = [resolve_product(device.product) for device in devices if not device.mig_profile]
    return len(rows) > 1 and all(row is not None and row.nvlink for row in rows)


def _is_ready(status: Mapping[str, Any]) -> bool:
    return any(
        condition.get("type") == "Ready" and condition.get("status") == "True"
        for condition in status.get("conditions") or ()
    )


def _taints(node: Mapping[str, Any]) -> tuple[Taint, ...]:
    return tuple(
        Taint(
            key=taint.get("key", ""),
            value=taint.get("value") or "",
            effect=taint.get("effect", "NoSchedule"),
        )
        for taint in (node.get("spec") or {}).get("taints") or ()
    )


def _metadata(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    return manifest.get("metadata") or {}
