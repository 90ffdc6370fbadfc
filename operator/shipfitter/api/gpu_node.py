"""GPUNode: what one node's GPUs offer, written only by that node's agent."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from shipfitter.api.base import (
    ApiModel,
    Bytes,
    Conditions,
    Count,
    Line,
    Metadata,
    Timestamp,
    Word,
)

Uuid = Annotated[str, Field(max_length=128)]


class MemoryKind(StrEnum):
    """Whether a GPU's memory is its own."""

    DEDICATED = "dedicated"
    UNIFIED = "unified"  # shared with the host: GB10, Jetson
    UNKNOWN = "unknown"


class Driver(ApiModel):
    """The NVIDIA driver of the node."""

    version: Word = ""
    cuda: Word = ""
    """Newest CUDA version the driver supports."""


class GpuMemory(ApiModel):
    """One GPU's memory as NVML's second memory query reports it."""

    kind: MemoryKind = MemoryKind.UNKNOWN
    total_bytes: Bytes | None = None
    """All memory of the card. What an engine sees as total is this less the reserved bytes."""
    reserved_bytes: Bytes | None = None
    """Kept by driver and firmware; no program can have it."""
    foreign_used_bytes: Bytes | None = None
    """In use by programs that are not engines of ours."""


class GpuHealth(ApiModel):
    """Whether the GPU can be used."""

    state: Annotated[str, Field(json_schema_extra={"enum": ["Healthy", "Unhealthy", "Unknown"]})]
    reason: Line = ""


class MigDevice(ApiModel):
    """A slice of a GPU that is partitioned in hardware."""

    uuid: Uuid
    profile: Word
    """As the device plugin spells it: 1g.10gb."""
    memory_bytes: Bytes | None = None


class GpuDevice(ApiModel):
    """One GPU of the node."""

    uuid: Uuid
    product: Word
    """As gpu-feature-discovery spells it: NVIDIA-L40S."""
    compute_capability: Annotated[str, Field(max_length=16)] | None = None
    memory: GpuMemory = GpuMemory()
    ecc: bool | None = None
    mig_enabled: bool = False
    health: GpuHealth = GpuHealth(state="Unknown")
    numa_node: Annotated[int, Field(ge=-1, le=1024)] | None = None
    mig_devices: Annotated[tuple[MigDevice, ...], Field(max_length=16)] = ()


class GPUNodeSummary(ApiModel):
    """Strings for the printer columns, which can neither count nor shorten."""

    gpu: Word = ""
    count: Word = ""
    memory: Word = ""
    free: Word = ""
    compute_capability: Word = ""
    ready: Word = ""
    """Whether the driver can be asked, as the condition NVMLReady says."""


Island = Annotated[
    tuple[Annotated[int, Field(ge=0, le=1024)], ...],
    Field(max_length=64),
]


class GPUNodeStatus(ApiModel):
    """What the agent saw."""

    observed_at: Timestamp | None = None
    agent_version: Word | None = None
    boot_id: Word | None = None
    """The node's boot; a measurement holds until the node boots again or its driver changes."""
    driver: Driver = Driver()
    host_memory_bytes: Bytes | None = None
    gpus: Annotated[tuple[GpuDevice, ...], Field(max_length=64)] = ()
    nvlink_islands: Annotated[tuple[Island, ...], Field(max_length=64)] = ()
    """Indices into gpus, grouped by direct NVLink connection."""
    allocated: Annotated[tuple[Uuid, ...], Field(max_length=512)] | None = None
    """UUIDs in use by pods; absent where the kubelet's PodResources socket is not mounted."""
    usable_gpus: Count | None = None
    """GPUs (or MIG devices) that are healthy."""
    conditions: Conditions = ()
    summary: GPUNodeSummary = GPUNodeSummary()


class GPUNode(ApiModel):
    """The GPUs of one node, as measured there. Named like its Node and owned by it."""

    api_version: Literal["shipfitter.dev/v1alpha1"] = "shipfitter.dev/v1alpha1"
    kind: Literal["GPUNode"] = "GPUNode"
    metadata: Metadata
    status: GPUNodeStatus = GPUNodeStatus()
