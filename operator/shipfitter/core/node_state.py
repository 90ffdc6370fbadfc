"""A Node without its GPUs: its names, taints and readiness, and whether a measurement is of it."""

from collections.abc import Mapping
from typing import Any

from shipfitter.core.capacity import NodeCapacity, read_taints
from shipfitter.core.quantities import whole

# Whoever carries one of these takes no new pods, whatever they tolerate.
# Source: the taints of node controller, cluster-autoscaler and Karpenter.
_LEAVING_TAINTS = (
    "node.cloudprovider.kubernetes.io/",
    "node.kubernetes.io/",
    "ToBeDeletedByClusterAutoscaler",
    "karpenter.sh/disrupt",
)


def without_devices(node: Mapping[str, Any], resource_name: str) -> NodeCapacity:
    """The node as the scheduler sees it, for one resource, with no device known yet."""
    status = node.get("status") or {}
    taints = read_taints((node.get("spec") or {}).get("taints"))
    leaving = [taint for taint in taints if taint.key.startswith(_LEAVING_TAINTS)]
    return NodeCapacity(
        name=str(metadata(node).get("name", "")),
        labels=labels(node),
        devices=(),
        allocatable_gpus=whole(allocatable(node).get(resource_name)),
        ready=_is_ready(status),
        schedulable=not (node.get("spec") or {}).get("unschedulable")
        and not metadata(node).get("deletionTimestamp")
        and all(taint.effect == "PreferNoSchedule" for taint in leaving),
        taints=tuple(taint for taint in taints if taint not in leaving),
        resource_name=resource_name,
        host_memory_bytes=host_memory_bytes(node),
    )


def in_force(node: Mapping[str, Any], gpunode: Mapping[str, Any], *, stale: bool) -> bool:
    """Whether a measurement is of this machine, and, when the agent is silent, of this boot."""
    uid = metadata(node).get("uid")
    owners = [owner.get("uid") for owner in metadata(gpunode).get("ownerReferences") or ()]
    if uid and owners and uid not in owners:
        return False
    if not stale:
        return True
    status = gpunode.get("status") or {}
    boot_id = ((node.get("status") or {}).get("nodeInfo") or {}).get("bootID")
    driver = labels(node).get("nvidia.com/cuda.driver-version.full")
    return boot_id in (None, "", status.get("bootId")) and driver in (
        None,
        "",
        (status.get("driver") or {}).get("version"),
    )


def nvml_ready(gpunode: Mapping[str, Any]) -> bool:
    """Whether the agent could ask the driver when it last wrote."""
    return all(
        condition.get("status") == "True"
        for condition in (gpunode.get("status") or {}).get("conditions") or ()
        if condition.get("type") == "NVMLReady"
    )


def sees_all_gpus(gpunode: Mapping[str, Any]) -> bool:
    """Whether the agent may open every GPU that the driver counts."""
    return not any(
        condition.get("reason") == "SomeGpusHidden"
        for condition in (gpunode.get("status") or {}).get("conditions") or ()
    )


def metadata(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """An object's metadata; empty where it has none."""
    return manifest.get("metadata") or {}


def labels(node: Mapping[str, Any]) -> Mapping[str, str]:
    """An object's labels."""
    return metadata(node).get("labels") or {}


def allocatable(node: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the kubelet gives to pods, as quantities."""
    return (node.get("status") or {}).get("allocatable") or {}


def host_memory_bytes(node: Mapping[str, Any]) -> int:
    """The machine's memory as the kubelet found it."""
    return whole(((node.get("status") or {}).get("capacity") or {}).get("memory"))


def _is_ready(status: Mapping[str, Any]) -> bool:
    return any(
        condition.get("type") == "Ready" and condition.get("status") == "True"
        for condition in status.get("conditions") or ()
    )
