"""Devices and nodes to pools: nodes whose GPUs are interchangeable for planning."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class CapacitySource(StrEnum):
    """Where a GPU's bytes were learnt, most trusted first."""

    MEASURED = "Measured"  # our agent, NVML
    STALE = "Stale"  # measured, and the agent is silent since
    RESOURCE_SLICE = "ResourceSlice"
    LABEL = "Label"  # gpu-feature-discovery
    CATALOGUE = "Catalogue"  # product name or instance type, and our table
    DECLARED = "Declared"


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One GPU (or MIG device) an engine could use."""

    product: str  # gpu-feature-discovery's spelling: NVIDIA-L40S
    total_bytes: int  # what CUDA calls total: NVML v2 total - reserved
    nominal_bytes: int = 0  # NVML total
    foreign_used_bytes: int = 0
    compute_capability: tuple[int, int] | None = None
    mig_profile: str = ""
    healthy: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Taint:
    """A node taint."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCapacity:
    """One node: what it has, what is free, and how it can be selected."""

    name: str
    labels: Mapping[str, str]
    devices: tuple[Device, ...]
    allocatable_gpus: int  # nvidia.com/gpu (or the MIG resource) the scheduler may hand out
    used_gpus: int = 0  # requested by bound pods that have not ended
    ready: bool = True
    schedulable: bool = True  # not cordoned, not being deleted
    taints: tuple[Taint, ...] = ()
    source: CapacitySource = CapacitySource.MEASURED
    sharing: str = "none"  # none | time-slicing | mps
    replicas_per_gpu: int = 1
    resource_name: str = "nvidia.com/gpu"
    host_memory_bytes: int = 0
    nvlink: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolNode:
    """A member of a pool."""

    name: str
    free_gpus: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Nodes whose GPUs are interchangeable: same product, bytes within 3 %, count, sharing, MIG profile."""

    name: str  # stable, a DNS label part: nvidia-l40s-8
    product: str
    gpus_per_node: int
    total_bytes: int  # per GPU, robust minimum of what CUDA calls total
    nominal_bytes: int
    foreign_used_bytes: int = 0
    compute_capability: tuple[int, int] | None = None
    nodes: tuple[PoolNode, ...] = ()
    selector: Mapping[str, str] = field(default_factory=dict)  # labels that select exactly the pool
    selector_is_exact: bool = True
    taints: tuple[Taint, ...] = ()
    source: CapacitySource = CapacitySource.MEASURED
    sharing: str = "none"
    replicas_per_gpu: int = 1
    mig_profile: str = ""
    resource_name: str = "nvidia.com/gpu"
    host_memory_bytes: int = 0
    nvlink: bool = False

    @property
    def free_gpus(self) -> int:
        """GPUs free over all nodes."""
        return sum(node.free_gpus for node in self.nodes)

    def replicas_that_fit(self, gpus_per_replica: int) -> int:
        """Replicas the free GPUs hold now; a replica never spans nodes."""
        return sum(node.free_gpus // gpus_per_replica for node in self.nodes)


def pools(nodes: tuple[NodeCapacity, ...]) -> tuple[Pool, ...]:
    """The pools of a cluster, ordered by name.

    Nodes that are not ready, cordoned, or without usable devices are left out. The bytes are the
    minimum over nodes within 3 % of the median of their class; an outlier becomes a pool of its
    own. Pools that no label separates are merged with the smaller bytes and
    `selector_is_exact = False`.
    """
    raise NotImplementedError
