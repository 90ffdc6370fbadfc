"""What the driver told, as values; and why it told nothing."""

from dataclasses import dataclass, replace
from typing import Any

# Source: nvml.h nvmlReturn_t. The rest keeps its number.
_REASONS = {
    1: "Uninitialized",
    4: "NoPermission",
    9: "DriverNotLoaded",
    12: "LibraryNotFound",
    13: "FunctionNotFound",
    15: "GpuIsLost",
    17: "OperatingSystemRefused",
    18: "LibRmVersionMismatch",
    28: "GpuNotFound",
    999: "UnknownError",
}

# What a person can do about each; the agent itself only waits.
_REMEDIES = {
    "LibraryNotFound": (
        "libnvidia-ml.so.1 is not visible in this container. On a node with GPUs give the agent "
        "the NVIDIA runtime (chart value agent.runtimeClassName), or let the container toolkit "
        "honour NVIDIA_VISIBLE_DEVICES for unprivileged pods, or mount the driver "
        "(agent.driverRoot)"
    ),
    "DriverNotLoaded": (
        "the kernel module is not loaded; if a driver container is still building it, wait, else "
        "load the driver on the node"
    ),
    "LibRmVersionMismatch": (
        "the driver's library and its kernel module differ, as during an upgrade; if it lasts, "
        "reboot the node or restart the agent's pod"
    ),
    "NoPermission": (
        "this container may not open the NVIDIA devices; set agent.runAsUser to 0 or open their "
        "permissions on the node"
    ),
    "UnknownError": (
        "the container lost its access to the devices, as after a systemctl daemon-reload; the "
        "agent restarts if that lasts"
    ),
}


class NvmlUnavailableError(Exception):
    """The driver cannot be asked now; `reason` is the condition's reason."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        remedy = _REMEDIES.get(reason, "see the NVIDIA driver's log on the node")
        super().__init__(f"NVML cannot be used ({reason}): {remedy}.")


def reason_of(code: int | None) -> str:
    """A condition's reason for a return code of NVML.

    >>> reason_of(9), reason_of(4711), reason_of(None)
    ('DriverNotLoaded', 'NVMLError4711', 'LibraryMismatch')
    """
    if code is None:
        return "LibraryMismatch"
    return _REASONS.get(code, f"NVMLError{code}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """A GPU's memory; None where the driver has no figure."""

    kind: str = "unknown"  # dedicated | unified | unknown
    total_bytes: int | None = None
    reserved_bytes: int | None = None
    used_bytes: int | None = None
    coherent: bool = False  # addresses the machine's memory in hardware: Grace, GB10, Thor


@dataclass(frozen=True, slots=True, kw_only=True)
class MigReading:
    """One MIG device."""

    uuid: str
    profile: str
    memory_bytes: int | None = None
    gpu_instance: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuReading:
    """One GPU; what could not be learnt is None or empty."""

    uuid: str
    index: int = 0  # the driver's own, which counts GPUs that we may not open
    minor_number: int | None = None  # of /dev/nvidiaN
    product: str = ""
    compute_capability: tuple[int, int] | None = None
    memory: Memory = Memory()
    ecc: bool | None = None
    compute_mode: int | None = None
    mig_enabled: bool = False
    mig_devices: tuple[MigReading, ...] = ()
    row_remap_pending: bool = False
    row_remap_failed: bool = False
    fabric_unfinished: bool = False
    xid: int | None = None
    is_lost: bool = False
    has_processes: bool = False
    numa_node: int | None = None
    pci_bus_id: str = ""
    doubts: tuple[str, ...] = ()  # what the driver would know and did not say this time

    def lost(self) -> "GpuReading":
        """The same GPU after it fell off the bus."""
        return replace(self, is_lost=True)

    @property
    def health(self) -> tuple[str, str]:
        """State and reason, for placing new pods; nothing here ends a running one.

        Compute mode 2 refuses every program, 3 all but one. Source: nvml.h nvmlComputeMode_t.
        """
        troubles = (
            (self.is_lost, "GpuIsLost"),
            (self.compute_mode == 2, "ComputeModeProhibited"),
            (self.row_remap_failed, "RowRemapFailure"),
            (self.fabric_unfinished, "FabricNotReady"),
            (self.xid is not None, f"Xid{self.xid}"),
        )
        for is_so, reason in troubles:
            if is_so:
                return "Unhealthy", reason
        if self.doubts:
            return "Unknown", self.doubts[0]
        remarks = (
            (self.row_remap_pending, "RowRemapPending"),  # after the next reset all is well again
            (self.compute_mode == 3, "ComputeModeExclusiveProcess"),
        )
        return "Healthy", next((reason for is_so, reason in remarks if is_so), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReading:
    """Every GPU of the node."""

    driver: str = ""
    cuda: str = ""
    gpus: tuple[GpuReading, ...] = ()
    hidden_gpus: int = 0  # counted by the driver, not to be opened by us
    nvlink_islands: tuple[tuple[int, ...], ...] = ()

    @property
    def is_doubtful(self) -> bool:
        """Whether another look may tell more."""
        return any(gpu.doubts for gpu in self.gpus)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """Equal fingerprints: a full reading would tell nothing new."""

    driver: str
    gpus: tuple[tuple[Any, ...], ...]
    xids: tuple[tuple[str, int], ...]
