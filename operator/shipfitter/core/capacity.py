"""What one node offers an engine: its devices, what is free, and how it can be selected."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from shipfitter.core.islands import Island


class CapacitySource(StrEnum):
    """Where a GPU's bytes were learnt, most trusted first."""

    MEASURED = "Measured"  # our agent, NVML
    STALE = "Stale"  # measured, and the agent is silent since
    RESOURCE_SLICE = "ResourceSlice"
    LABEL = "Label"  # gpu-feature-discovery
    CATALOGUE = "Catalogue"  # product name or instance type, and our table
    DECLARED = "Declared"
    EXPECTED = "Expected"  # of nodes that are not there yet

    @property
    def confidence(self) -> str:
        """How far a figure from there can be off: high, good, fair or low.

        Measured: what the engine will see. A slice or a label has NVML's total but not the driver's
        reserve (up to 0.9 %). The catalogue believes a name: modified cards and error correction
        make other memory of it. What is declared nobody checked.
        """
        return _CONFIDENCE[self]


_CONFIDENCE = {
    CapacitySource.MEASURED: "high",
    CapacitySource.STALE: "good",
    CapacitySource.RESOURCE_SLICE: "good",
    CapacitySource.LABEL: "good",
    CapacitySource.CATALOGUE: "fair",
    CapacitySource.DECLARED: "low",
    CapacitySource.EXPECTED: "low",
}


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
    unified: bool = False  # the host's memory: what pods and page cache take is gone for the GPU


@dataclass(frozen=True, slots=True, kw_only=True)
class Taint:
    """A node taint."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"


def read_taints(entries: Iterable[Mapping[str, Any]] | None) -> tuple[Taint, ...]:
    """Taints as the API writes them."""
    return tuple(
        Taint(
            key=str(each.get("key", "")),
            value=str(each.get("value") or ""),
            effect=str(each.get("effect", "NoSchedule")),
        )
        for each in entries or ()
    )


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
    islands: tuple[Island, ...] = ()  # of GPUs that NVLink joins, where the node's agent saw them
    by_claim: bool = False  # only a ResourceClaim gets these devices; no extended resource does
    remark: str = ""  # what of its agent's report is not believed, and why
    from_slices: bool = False  # a DRA driver hands them out: claims, not pods, tell what is used
