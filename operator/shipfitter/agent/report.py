"""Readings to a GPUNode: plain mappings, the same for the same reading."""

from collections.abc import Mapping, Sequence
from typing import Any

from shipfitter.agent.devices import GpuReading, MigReading, NodeReading
from shipfitter.agent.foreign import ForeignMemory
from shipfitter.agent.host import Host
from shipfitter.core.gpu_words import short_product
from shipfitter.core.gpus import resolve_product
from shipfitter.units import GIB

API_VERSION = "shipfitter.dev/v1alpha1"
KIND = "GPUNode"
NVML_READY = "NVMLReady"
POD_RESOURCES_READ = "PodResourcesRead"

Status = dict[str, Any]


def gpu_node(name: str, status: Status) -> dict[str, Any]:
    """The object, as a person or the API server reads it."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": name},
        "status": status,
    }


def ready_status(
    reading: NodeReading,
    host: Host,
    foreign: ForeignMemory,
    allocated: Sequence[str] | None = None,
    offered: Sequence[str] = (),
) -> Status:
    """The status after a full reading.

    Where the kubelet tells: `allocated` are the devices that pods hold, `offered` those that it can
    hand out at all (none where it hands out claims only).
    """
    host_memory_bytes = host.memory_bytes()
    gpus = [_gpu(gpu, host, foreign, host_memory_bytes, allocated) for gpu in reading.gpus]
    driver = {"version": reading.driver, "cuda": reading.cuda}
    return _without_none(
        {
            "bootId": host.boot_id() or None,
            "driver": {key: value for key, value in driver.items() if value} or None,
            "hostMemoryBytes": host_memory_bytes,
            "gpus": gpus,
            "nvlinkIslands": [list(island) for island in reading.nvlink_islands],
            "allocated": None if allocated is None else list(allocated),
            "usableGpus": usable_gpus(gpus),
            "summary": summary(gpus, allocated, offered) | {"ready": "True"},
            "conditions": [_condition("True", *_seen(reading))],
        }
    )


def with_pods(status: Status, trouble: str | None) -> Status:
    """The status with a condition that says whether the kubelet tells which GPUs pods hold."""
    told = (
        _condition("False", "KubeletSilent", trouble, POD_RESOURCES_READ)
        if trouble
        else _condition("True", "PodsSeen", "", POD_RESOURCES_READ)
    )
    return status | {"conditions": [*status["conditions"], told]}


def unready_status(reason: str, message: str, host: Host, last: Mapping[str, Any]) -> Status:
    """The status while the driver cannot be asked: what was measured in this boot stays."""
    boot_id = host.boot_id()
    same_boot = bool(last) and last.get("bootId", "") == boot_id
    gpus = list(last.get("gpus") or ()) if same_boot else []
    return _without_none(
        {
            "bootId": boot_id or None,
            "driver": last.get("driver") if same_boot else None,
            "hostMemoryBytes": host.memory_bytes(),
            "gpus": gpus,
            "nvlinkIslands": list(last.get("nvlinkIslands") or ()) if same_boot else [],
            "usableGpus": usable_gpus(gpus),
            "summary": summary(gpus) | {"ready": "False"},
            "conditions": [_condition("False", reason, message)],
        }
    )


def meaning(status: Mapping[str, Any]) -> dict[str, Any]:
    """The status without its times: what makes writing it worth while."""
    conditions = [
        {key: value for key, value in condition.items() if key != "lastTransitionTime"}
        for condition in status.get("conditions") or ()
    ]
    timeless = {key: value for key, value in status.items() if key != "observedAt"}
    return timeless | {"conditions": conditions}


def with_times(status: Status, now: str, last: Mapping[str, Any], agent_version: str) -> Status:
    """The status as written now; a condition keeps its time while its status is the same."""
    before = {c.get("type"): c for c in last.get("conditions") or ()}
    conditions = []
    for condition in status["conditions"]:
        old = before.get(condition["type"], {})
        kept = old.get("lastTransitionTime") if old.get("status") == condition["status"] else None
        conditions.append(condition | {"lastTransitionTime": kept or now})
    return status | {
        "conditions": conditions,
        "observedAt": now,
        "agentVersion": agent_version,
    }


def usable_gpus(gpus: Sequence[Mapping[str, Any]]) -> int:
    """GPUs, or MIG devices of partitioned ones, that a new pod could get."""
    return sum(
        len(gpu.get("migDevices") or ()) if gpu["migEnabled"] else 1
        for gpu in gpus
        if gpu["health"]["state"] == "Healthy"
    )


def summary(
    gpus: Sequence[Mapping[str, Any]],
    allocated: Sequence[str] | None = None,
    offered: Sequence[str] = (),
) -> dict[str, str]:
    """What `kubectl get` shows: products, their number, the least any offers, how many are free."""
    if not gpus:
        return {"gpu": "", "count": "0", "memory": "", "free": "", "computeCapability": ""}
    healthy = [gpu for gpu in gpus if gpu["health"]["state"] == "Healthy"]
    sizes = [size for gpu in healthy for size in _sizes_bytes(gpu)]
    return {
        "gpu": ",".join(dict.fromkeys(short_product(gpu["product"]) for gpu in gpus))[:128],
        "count": str(len(gpus)),
        "memory": f"{min(sizes) / GIB:.1f}Gi" if sizes else "",
        "free": "-" if allocated is None else str(_free(healthy, allocated, offered)),
        "computeCapability": ",".join(
            dict.fromkeys(gpu["computeCapability"] for gpu in gpus if "computeCapability" in gpu)
        ),
    }


def _free(
    healthy: Sequence[Mapping[str, Any]], allocated: Sequence[str], offered: Sequence[str]
) -> int:
    """GPUs, or MIG devices of partitioned ones, that no pod holds and one may get."""
    devices = [
        device
        for gpu in healthy
        for device in (gpu.get("migDevices") or () if gpu["migEnabled"] else (gpu,))
    ]
    return sum(
        device["uuid"] not in allocated and (not offered or device["uuid"] in offered)
        for device in devices
    )


def _sizes_bytes(gpu: Mapping[str, Any]) -> list[int]:
    """Bytes a pod can get of a GPU: all of it, or one of its slices."""
    if gpu["migEnabled"]:
        slices = gpu.get("migDevices") or ()
        return [mig["memoryBytes"] for mig in slices if "memoryBytes" in mig]
    memory = gpu["memory"]
    if "totalBytes" not in memory:
        return []
    return [memory["totalBytes"] - memory.get("reservedBytes", 0)]


def _gpu(
    gpu: GpuReading,
    host: Host,
    foreign: ForeignMemory,
    host_memory_bytes: int | None,
    allocated: Sequence[str] | None,
) -> dict[str, Any]:
    memory = gpu.memory
    total_bytes, reserved_bytes = memory.total_bytes, memory.reserved_bytes
    kind = "unified" if _is_unified(gpu, host_memory_bytes) else memory.kind
    if kind == "unified":
        total_bytes, reserved_bytes = host_memory_bytes, 0
    capability = gpu.compute_capability
    numa_node = gpu.numa_node if gpu.numa_node is not None else host.numa_node(gpu.pci_bus_id)
    state, reason = gpu.health
    return _without_none(
        {
            "uuid": gpu.uuid,
            "product": gpu.product,
            "computeCapability": f"{capability[0]}.{capability[1]}" if capability else None,
            "memory": _without_none(
                {
                    "kind": kind,
                    "totalBytes": total_bytes,
                    "reservedBytes": reserved_bytes,
                    "foreignUsedBytes": 0
                    if memory.used_bytes is None
                    else foreign.settle(gpu, held=_held(gpu, allocated)),
                }
            ),
            "ecc": gpu.ecc,
            "migEnabled": gpu.mig_enabled,
            "health": {"state": state, "reason": reason},
            "numaNode": numa_node,
            "migDevices": [_mig(mig) for mig in gpu.mig_devices] if gpu.mig_enabled else None,
        }
    )


def _held(gpu: GpuReading, allocated: Sequence[str] | None) -> bool | None:
    """Whether a pod holds the GPU; not known of partitioned ones, whose slices pods hold."""
    return None if allocated is None or gpu.mig_enabled else gpu.uuid in allocated


def _is_unified(gpu: GpuReading, host_memory_bytes: int | None) -> bool:
    """Whether the GPU has no memory but the machine's.

    The catalogue names those that are known. Of another one the driver tells the machine's own
    figure, or none, and that it is coherent with the machine.
    """
    memory = gpu.memory
    if memory.kind == "unified" or gpu.mig_enabled or resolve_product(gpu.product):
        return memory.kind == "unified"
    if memory.total_bytes is None:
        return memory.coherent
    apart = abs(memory.total_bytes - (host_memory_bytes or 0))
    return apart * 100 <= memory.total_bytes * 3


def _mig(mig: MigReading) -> dict[str, Any]:
    return _without_none(
        {"uuid": mig.uuid, "profile": mig.profile, "memoryBytes": mig.memory_bytes}
    )


def _seen(reading: NodeReading) -> tuple[str, str]:
    seen = f"{_count(len(reading.gpus), 'GPU')} seen with driver {reading.driver or 'unknown'}"
    if reading.hidden_gpus:
        return "SomeGpusHidden", (
            f"{seen}; {reading.hidden_gpus} more may not be opened by this container. Give it all "
            "GPUs (NVIDIA_VISIBLE_DEVICES=all through the NVIDIA runtime)."
        )
    blind = [gpu for gpu in reading.gpus if gpu.mig_enabled and not gpu.mig_devices]
    if blind:
        return "MigDevicesHidden", (
            f"{seen}; {len(blind)} partitioned without a MIG device to be seen. Seeing any needs "
            "the chart value agent.privileged; until then the node's labels tell of them."
        )
    return "GpusSeen" if reading.gpus else "NoGpus", f"{seen}."


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _condition(status: str, reason: str, message: str, kind: str = NVML_READY) -> dict[str, Any]:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def _without_none(mapping: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in mapping.items() if value is not None}
