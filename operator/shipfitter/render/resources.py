"""What a pod asks for: GPUs by the plan, CPU and host memory from the bytes."""

from typing import Any

from shipfitter.api.model_deployment import Allocation, ModelDeployment
from shipfitter.core.plan import Sizing
from shipfitter.render.variant import gpus_per_pod, nodes_per_replica
from shipfitter.units import GIB, MIB, ceil_div

# Source: out-of-memory kills while loading in vllm#1395 and #28923: pinned staging buffers, copies
# of each rank and quantisation at load cannot be reclaimed, mapped weights can.
BASE_MEMORY_BYTES = 4 * GIB
MEMORY_PER_GPU_BYTES = 2 * GIB
LEAST_LOADING_BYTES = 8 * GIB
LOADING_SHARE_OF_WEIGHTS = 10  # one tenth
MOST_OF_A_NODE_PERCENT = 90  # what a pod may ask of its share of the node's memory
DOWNLOAD_OVERHEAD_PERCENT = 110

BASE_CPUS = 2
CPUS_PER_GPU = 1  # a rank waits busily

SHM_BASE_BYTES = 2 * GIB
SHM_PER_FURTHER_GPU_BYTES = 1 * GIB
MOST_SHM_BYTES = 8 * GIB


def shm_bytes(sizing: Sizing) -> int:
    """/dev/shm: ranks talk through it, and the container default of 64 MiB is too small."""
    further = SHM_PER_FURTHER_GPU_BYTES * (gpus_per_pod(sizing) - 1)
    return min(MOST_SHM_BYTES, SHM_BASE_BYTES + further)


def host_memory_bytes(sizing: Sizing) -> int:
    """Host memory one pod needs, at most its share of the smallest node."""
    gpus = gpus_per_pod(sizing)
    weights_bytes = sizing.model.facts.checkpoint_bytes // nodes_per_replica(sizing)
    loading_bytes = max(LEAST_LOADING_BYTES, weights_bytes // LOADING_SHARE_OF_WEIGHTS)
    if sizing.pool.unified:  # the GPU's memory is the host's
        loading_bytes += sizing.budget.requested_bytes * gpus
    needed = BASE_MEMORY_BYTES + MEMORY_PER_GPU_BYTES * gpus + shm_bytes(sizing) + loading_bytes
    node_bytes = sizing.pool.host_memory_bytes
    if not node_bytes:
        return needed
    share = node_bytes * gpus // max(gpus, sizing.pool.gpus_per_node)
    return min(needed, share * MOST_OF_A_NODE_PERCENT // 100)


def mebibytes(size_bytes: int) -> str:
    """A quantity in whole Mi, rounded up."""
    return f"{ceil_div(size_bytes, MIB)}Mi"


def engine_resources(
    resource: ModelDeployment, sizing: Sizing, *, downloads: bool
) -> dict[str, dict[str, Any]]:
    """The engine container's requests and limits; what the user sets replaces ours by name.

    No limit on CPU (throttling hurts the scheduler loop) nor on memory (mapped weights count).
    """
    requests: dict[str, Any] = {
        "cpu": str(BASE_CPUS + CPUS_PER_GPU * gpus_per_pod(sizing)),
        "memory": mebibytes(host_memory_bytes(sizing)),
    }
    if downloads:
        stored = sizing.model.facts.checkpoint_bytes * DOWNLOAD_OVERHEAD_PERCENT // 100
        requests["ephemeral-storage"] = mebibytes(stored)
    wanted = resource.spec.resources
    limits: dict[str, Any] = dict(wanted.limits or {})
    for name in limits:
        requests.pop(name, None)  # a limit alone is its own request
    requests |= wanted.requests or {}
    if resource.spec.gpus.allocation is Allocation.DEVICE_PLUGIN:
        limits[sizing.pool.resource_name] = str(gpus_per_pod(sizing))
    return {
        "requests": dict(sorted(requests.items())),
        "limits": dict(sorted(limits.items())),
    }
