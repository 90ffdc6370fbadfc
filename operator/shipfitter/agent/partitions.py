"""Partitions of a GPU (MIG) as the driver tells of them. Imports `pynvml`."""

import re
from typing import Any

import pynvml

from shipfitter.agent.asking import ask_gpu, ask_surely
from shipfitter.agent.devices import MigReading
from shipfitter.units import GIB, MIB


def is_partitioned(handle: Any) -> bool:
    """Whether the GPU is in MIG mode; UnansweredError where the driver does not say.

    A GPU that says it cannot be, and has room for MIG devices, is: its whole memory is nobody's.
    """
    mode = ask_surely(pynvml.nvmlDeviceGetMigMode, handle)
    if mode is not None:
        return bool(mode[0])
    return bool(ask_gpu(pynvml.nvmlDeviceGetMaxMigDeviceCount, handle))


def mig_uuids(handle: Any) -> tuple[str, ...]:
    """The MIG devices there are; none where the GPU is whole."""
    mode = ask_gpu(pynvml.nvmlDeviceGetMigMode, handle)
    if not mode or not mode[0]:
        return ()
    slots = range(ask_gpu(pynvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0)
    found = (ask_gpu(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, slot) for slot in slots)
    return tuple(ask_gpu(pynvml.nvmlDeviceGetUUID, mig) or "" for mig in found if mig)


def mig_devices(handle: Any, gpu_total_bytes: int | None) -> tuple[MigReading, ...]:
    """Every MIG device; empty slots between them are normal."""
    devices = []
    for slot in range(ask_gpu(pynvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0):
        mig = ask_gpu(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, slot)
        uuid = mig and ask_gpu(pynvml.nvmlDeviceGetUUID, mig)
        if not uuid:
            continue
        attributes = ask_gpu(pynvml.nvmlDeviceGetAttributes, mig)
        name = ask_gpu(pynvml.nvmlDeviceGetName, mig) or ""
        devices.append(
            MigReading(
                uuid=uuid,
                profile=_profile(name, attributes, gpu_total_bytes),
                memory_bytes=_memory_bytes(mig, attributes),
                gpu_instance=ask_gpu(pynvml.nvmlDeviceGetGpuInstanceId, mig),
            )
        )
    return tuple(devices)


def _memory_bytes(mig: Any, attributes: Any) -> int | None:
    if attributes:
        return int(attributes.memorySizeMB) * MIB
    info = ask_gpu(pynvml.nvmlDeviceGetMemoryInfo, mig)
    return int(info.total) if info else None


def _profile(name: str, attributes: Any, gpu_total_bytes: int | None) -> str:
    """The profile in the device's name, else worked out of its slices and share of the memory.

    Source: NVIDIA/go-nvlib pkg/nvlib/device: eighths of the memory rounded up, of the whole GiB.
    """
    found = re.search(r"MIG (\S+)", name)
    if found:
        return found[1]
    if not attributes or not gpu_total_bytes:
        return ""
    eighths = -(-attributes.memorySizeMB * MIB * 8 // gpu_total_bytes)
    gigabytes = round(eighths * -(-gpu_total_bytes // GIB) / 8)
    slices, computing = attributes.gpuInstanceSliceCount, attributes.computeInstanceSliceCount
    prefix = f"{computing}c." if 0 < computing < slices else ""
    return f"{prefix}{slices}g.{gigabytes}gb"
