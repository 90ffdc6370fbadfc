"""A node's GPUs as the NVIDIA driver tells of them. Imports `pynvml`."""

from typing import Any

import pynvml

from shipfitter.agent.asking import (
    LostError,
    UnansweredError,
    ask,
    ask_gpu,
    ask_surely,
    must,
    open_gpu,
)
from shipfitter.agent.devices import Fingerprint, GpuReading, Memory, NodeReading
from shipfitter.agent.partitions import is_partitioned, mig_devices, mig_uuids
from shipfitter.core.gpus import assumed_reserved_bytes, normalise_product, resolve_product
from shipfitter.units import MIB

# The library defines this index as a tuple by mistake; nvml.h says 2.
P2P_CAPS_INDEX_NVLINK = 2
ATS = pynvml.NVML_DEVICE_ADDRESSING_MODE_ATS
INIT_WITHOUT_GPUS = 1  # a driver without a device is no error
FABRIC_UNFINISHED = (
    pynvml.NVML_GPU_FABRIC_STATE_NOT_STARTED,
    pynvml.NVML_GPU_FABRIC_STATE_IN_PROGRESS,
)
# Errors of applications, not of the GPU. Source: NVIDIA/k8s-device-plugin internal/rm/health.go.
APPLICATION_XIDS = frozenset({13, 31, 43, 45, 68, 109})


class Nvml:
    """One session with the driver, asked from one thread."""

    def __init__(self) -> None:
        self._is_open = False
        self._last: dict[str, GpuReading] = {}  # by UUID: what a lost GPU was
        self._uuids: tuple[str, ...] = ()  # by index, as last seen
        self._islands: dict[tuple[str, ...], tuple[tuple[int, ...], ...]] = {}
        self._xids: dict[str, int] = {}
        self._events: Any = None

    def open(self) -> None:
        """Begin a session. Raises NvmlUnavailableError with the driver's reason."""
        if not self._is_open:
            must(pynvml.nvmlInitWithFlags, INIT_WITHOUT_GPUS)
            self._is_open = True
            self._watch_events()

    def close(self) -> None:
        """End the session; a driver upgrade cannot unload the module while one is open."""
        if self._is_open:
            self._is_open = False
            self._events = None
            ask(pynvml.nvmlShutdown)

    def forget_xids(self) -> None:
        """The driver was loaded anew: a GPU that is still broken will say so again."""
        self._xids.clear()

    def fingerprint(self) -> Fingerprint:
        """What is cheap to ask and changes when anything does that a full reading would tell."""
        self.open()
        self._collect_events()
        count = must(pynvml.nvmlDeviceGetCount)
        return Fingerprint(
            driver=ask(pynvml.nvmlSystemGetDriverVersion) or "",
            gpus=tuple(self._gpu_fingerprint(index) for index in range(count)),
            xids=tuple(sorted(self._xids.items())),
        )

    def read(self) -> NodeReading:
        """Everything about every GPU. Raises NvmlUnavailableError."""
        self.open()
        self._collect_events()
        count = must(pynvml.nvmlDeviceGetCount)
        found = [self._gpu(index) for index in range(count)]
        gpus = tuple(gpu for gpu, _ in found if gpu)
        cuda = ask(pynvml.nvmlSystemGetCudaDriverVersion_v2)
        reading = NodeReading(
            driver=ask(pynvml.nvmlSystemGetDriverVersion) or "",
            cuda=f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda else "",
            gpus=gpus,
            hidden_gpus=sum(gpu is None for gpu, _ in found),
            nvlink_islands=self._nvlink_islands(found),
        )
        self._last = {gpu.uuid: gpu for gpu in gpus}
        self._uuids = tuple(gpu.uuid if gpu else "" for gpu, _ in found)
        if any(gpu.is_lost for gpu in gpus):
            self.close()  # the whole session is suspect; the next pass begins a new one
        return reading

    def _gpu_fingerprint(self, index: int) -> tuple[Any, ...]:
        try:
            handle = open_gpu(index)
            memory = _memory_info(handle)
            return (
                ask_gpu(pynvml.nvmlDeviceGetUUID, handle),
                ask_gpu(pynvml.nvmlDeviceGetMigMode, handle),
                ask_gpu(pynvml.nvmlDeviceGetComputeMode, handle),
                memory and (memory.total, memory.used // (64 * MIB)),
                mig_uuids(handle),
                _fabric_state(handle),
            )
        except LostError:
            return (index, "lost")

    def _gpu(self, index: int) -> tuple[GpuReading | None, Any]:
        """One GPU and its handle; as last seen when it is lost, None when it may not be opened."""
        facts: dict[str, Any] = {"index": index}
        handle = None
        try:
            handle = open_gpu(index)
            if handle is not None:
                self._fill(facts, handle)
        except LostError:
            known = self._uuids[index] if index < len(self._uuids) else ""
            last = self._last.get(facts.get("uuid", known))
            if last:
                return last.lost(), None
            facts["is_lost"] = True
        if not facts.get("uuid"):
            return None, None
        return GpuReading(**facts | {"doubts": tuple(facts.get("doubts", ()))}), handle

    def _fill(self, facts: dict[str, Any], handle: Any) -> None:
        """Collect facts one by one, so that those before a loss are kept."""
        facts["uuid"] = ask_gpu(pynvml.nvmlDeviceGetUUID, handle) or ""
        facts["minor_number"] = ask_gpu(pynvml.nvmlDeviceGetMinorNumber, handle)
        facts["product"] = normalise_product(ask_gpu(pynvml.nvmlDeviceGetName, handle) or "")
        facts["compute_capability"] = ask_gpu(pynvml.nvmlDeviceGetCudaComputeCapability, handle)
        facts["doubts"] = [] if facts["product"] else ["NameUnknown"]
        try:
            facts["mig_enabled"] = is_partitioned(handle)
        except UnansweredError:
            facts["doubts"].append("MigModeUnknown")
        facts["memory"] = _memory(handle, facts["product"])
        ecc = ask_gpu(pynvml.nvmlDeviceGetEccMode, handle)
        facts["ecc"] = bool(ecc[0]) if ecc else None
        try:
            facts["compute_mode"] = ask_surely(pynvml.nvmlDeviceGetComputeMode, handle)
        except UnansweredError:
            facts["doubts"].append("ComputeModeUnknown")
        remapped = ask_gpu(pynvml.nvmlDeviceGetRemappedRows, handle)
        facts["row_remap_pending"] = bool(remapped and remapped[2])
        facts["row_remap_failed"] = bool(remapped and remapped[3])
        facts["fabric_unfinished"] = _fabric_state(handle) in FABRIC_UNFINISHED
        facts["xid"] = self._xids.get(facts["uuid"])
        facts["numa_node"] = ask_gpu(pynvml.nvmlDeviceGetNumaNodeId, handle)
        pci = ask_gpu(pynvml.nvmlDeviceGetPciInfo, handle)
        facts["pci_bus_id"] = _text(pci.busId) if pci else ""
        processes = ask_gpu(pynvml.nvmlDeviceGetComputeRunningProcesses, handle)
        facts["has_processes"] = bool(processes)
        if facts.get("mig_enabled"):
            facts["mig_devices"] = mig_devices(handle, facts["memory"].total_bytes)

    def _nvlink_islands(
        self, found: list[tuple[GpuReading | None, Any]]
    ) -> tuple[tuple[int, ...], ...]:
        """Indices of GPUs that NVLink joins; asked once per set of GPUs, being n² questions."""
        # Slices of a partitioned GPU have no NVLink, and a lost one has no handle.
        handles = [None if gpu.mig_enabled else handle for gpu, handle in found if gpu]
        linked = tuple(gpu.uuid for gpu, _ in found if gpu and not gpu.mig_enabled)
        if linked not in self._islands:
            self._islands = {linked: _islands(handles)}
        return self._islands[linked]

    def _watch_events(self) -> None:
        """Hear of XID errors where the hardware tells; where not, GPUs are merely unmonitored."""
        self._events = ask(pynvml.nvmlEventSetCreate)
        if self._events is None:
            return
        for index in range(ask(pynvml.nvmlDeviceGetCount) or 0):
            handle = ask(pynvml.nvmlDeviceGetHandleByIndex, index)
            types = ask(pynvml.nvmlDeviceGetSupportedEventTypes, handle) if handle else None
            if types:
                wanted = types & pynvml.nvmlEventTypeXidCriticalError
                ask(pynvml.nvmlDeviceRegisterEvents, handle, wanted, self._events)

    def _collect_events(self) -> None:
        for _ in range(64):  # a storm must not hold the pass
            event = self._events and ask(pynvml.nvmlEventSetWait, self._events, 0)
            if not event:
                return
            uuid = ask(pynvml.nvmlDeviceGetUUID, event.device)
            if uuid and event.eventData not in APPLICATION_XIDS:
                self._xids[uuid] = event.eventData


def _memory_info(handle: Any) -> Any:
    """NVML's second memory query, or its first where the driver has no second."""
    return ask_gpu(pynvml.nvmlDeviceGetMemoryInfo, handle, version=pynvml.nvmlMemory_v2) or ask_gpu(
        pynvml.nvmlDeviceGetMemoryInfo, handle
    )


def _memory(handle: Any, product: str) -> Memory:
    row = resolve_product(product)
    if row and row.unified:  # the driver may or may not have a figure; the machine's is the truth
        return Memory(kind="unified")
    # Integrated with the machine's memory; Grace's own GPUs are so too, and have a memory besides.
    coherent = ask_gpu(pynvml.nvmlDeviceGetAddressingMode, handle) == ATS
    info = _memory_info(handle)
    if info is None:
        return Memory(kind="unknown", coherent=coherent)
    reserved_bytes = getattr(info, "reserved", None)
    used_bytes = info.used
    if reserved_bytes is None:  # the first query counts it as used, where the driver knows of it
        reserved_bytes = assumed_reserved_bytes(row, info.total)
        if row is None:  # better what is gone of an idle card than a rule of thumb
            reserved_bytes = max(reserved_bytes, min(used_bytes, info.total // 10))
        used_bytes = max(0, used_bytes - reserved_bytes)
    return Memory(
        kind="dedicated",
        total_bytes=info.total,
        reserved_bytes=reserved_bytes,
        used_bytes=used_bytes,
        coherent=coherent,
    )


def _fabric_state(handle: Any) -> int | None:
    fabric = pynvml.c_nvmlGpuFabricInfoV_t()
    asked = ask_gpu(pynvml.nvmlDeviceGetGpuFabricInfoV, handle, pynvml.byref(fabric))
    return None if asked is None else int(fabric.state)


def _islands(handles: list[Any]) -> tuple[tuple[int, ...], ...]:
    """Groups of at least two GPUs that reach each other over NVLink."""
    islands: list[list[int]] = []
    for index, handle in enumerate(handles):
        for island in islands:
            other = handles[island[0]]
            asked = (handle, other, P2P_CAPS_INDEX_NVLINK)
            if None not in asked and ask(pynvml.nvmlDeviceGetP2PStatus, *asked) == 0:
                island.append(index)
                break
        else:
            islands.append([index])
    return tuple(tuple(island) for island in islands if len(island) > 1)


def _text(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
