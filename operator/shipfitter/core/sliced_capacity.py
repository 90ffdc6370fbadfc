"""Nodes whose GPUs a DRA driver hands out: what each kind of claim, and a mapped resource, gets."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from shipfitter.core.capacity import CapacitySource, Device, NodeCapacity
from shipfitter.core.claimable import Claimable, claimables
from shipfitter.core.gpus import resolve_product
from shipfitter.core.measured import measured_by_uuid, nvlink_connects_all
from shipfitter.core.node_state import in_force, nvml_ready, without_devices
from shipfitter.core.resource_slices import GPU, ResourceSlice, SlicedDevice, device_of

MAPPED_RESOURCE = "nvidia.com/gpu"  # what NVIDIA's device class for whole GPUs stands for


def sliced_capacities(
    node: Mapping[str, Any],
    gpunode: Mapping[str, Any] | None,
    slices: Collection[ResourceSlice],
    *,
    taken: Collection[str] = (),
    mapped: Collection[str] = (),
    stale: bool = False,
) -> tuple[NodeCapacity, ...]:
    """One capacity for each kind a claim can ask for, and one for the resource that is mapped.

    The mapped resource takes any whole GPU. A planner looks at claims or at the resource, never at
    both: they are the same devices.
    """
    measured = _measured(node, gpunode, stale=stale)
    found = claimables(slices, taken)
    offers = [(each, True) for each in found]
    whole_gpus = [each for each in found if each.devices[0].kind == GPU]
    if MAPPED_RESOURCE in mapped and whole_gpus:
        offers.insert(0, (_any_of(whole_gpus), False))
    is_stale = gpunode is not None and (stale or not nvml_ready(gpunode))
    return tuple(
        capacity
        for offer, by_claim in offers
        if (
            capacity := _capacity(
                without_devices(node, offer.resource_name),
                offer,
                measured,
                nvlink=_nvlink(offer, gpunode if measured else None),
                by_claim=by_claim,
                is_stale=is_stale,
            )
        )
    )


def _any_of(kinds: list[Claimable]) -> Claimable:
    return Claimable(
        resource_name=MAPPED_RESOURCE,
        devices=tuple(device for each in kinds for device in each.devices),
        taken=sum(each.taken for each in kinds),
        left=sum(each.left for each in kinds),
    )


def _capacity(
    bare: NodeCapacity,
    offer: Claimable,
    measured: Mapping[str, Device],
    *,
    nvlink: bool,
    by_claim: bool,
    is_stale: bool,
) -> NodeCapacity | None:
    """The node with one kind of device; None where their bytes are nowhere to be learnt."""
    found = [_device(each, measured, bare.host_memory_bytes) for each in offer.devices]
    devices = tuple(device for device in found if device)
    if not devices:
        return None
    seen = all(each.uuid in measured for each in offer.devices)
    measurement = CapacitySource.STALE if is_stale else CapacitySource.MEASURED
    return replace(
        bare,
        devices=devices,
        allocatable_gpus=offer.taken + offer.left,
        used_gpus=offer.taken,
        source=measurement if seen else CapacitySource.RESOURCE_SLICE,
        nvlink=nvlink,
        by_claim=by_claim,
        from_slices=True,
    )


def _device(
    sliced: SlicedDevice, measured: Mapping[str, Device], host_memory_bytes: int
) -> Device | None:
    """The measurement of this very device, where it is of the same product; else the slice's."""
    found = measured.get(sliced.uuid)
    if found and found.total_bytes and found.product == sliced.product:
        return replace(
            found,
            mig_profile=sliced.mig_profile,
            healthy=found.healthy and sliced.healthy,
        )
    return device_of(sliced, host_memory_bytes)


def _measured(
    node: Mapping[str, Any], gpunode: Mapping[str, Any] | None, *, stale: bool
) -> Mapping[str, Device]:
    if gpunode is None:
        return {}
    stale = stale or not nvml_ready(gpunode)
    if not in_force(node, gpunode, stale=stale):
        return {}
    return measured_by_uuid(gpunode.get("status") or {})


def _nvlink(offer: Claimable, gpunode: Mapping[str, Any] | None) -> bool:
    """Whether all GPUs of the kind are joined; a claim does not say which of them it gets."""
    if gpunode is not None:
        uuids = [device.uuid for device in offer.devices]
        return nvlink_connects_all(gpunode.get("status") or {}, uuids)
    rows = [resolve_product(device.product) for device in offer.devices if not device.mig_profile]
    return len(rows) > 1 and all(row is not None and row.nvlink for row in rows)
