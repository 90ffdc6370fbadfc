"""What dynamic resource allocation says: slices by node, devices that claims hold, mapped names."""

import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from shipfitter.cluster.store import Change
from shipfitter.core.resource_slices import DRIVER, ResourceSlice, current, parse_slice

Taken = Mapping[str, frozenset[str]]  # pool → names of its devices that claims hold


def resource_slice(raw: Mapping[str, Any]) -> ResourceSlice:
    """A ResourceSlice; empty where its devices are no GPUs of a node."""
    return parse_slice(raw.get("spec") or {})


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldDevices:
    """The devices a ResourceClaim holds: (pool, device)."""

    devices: tuple[tuple[str, str], ...] = ()


def resource_claim(raw: Mapping[str, Any]) -> HeldDevices:
    """A ResourceClaim as far as GPUs are concerned."""
    allocation = (raw.get("status") or {}).get("allocation") or {}
    results = (allocation.get("devices") or {}).get("results") or ()
    return HeldDevices(
        devices=tuple(
            (str(each.get("pool", "")), str(each.get("device", "")))
            for each in results
            # An administrator's access shares a device with whoever has it.
            if each.get("driver") == DRIVER and not each.get("adminAccess")
        )
    )


def device_class(raw: Mapping[str, Any]) -> str:
    """The extended resource a DeviceClass stands for; empty where for none."""
    return str((raw.get("spec") or {}).get("extendedResourceName") or "")


def taken(claims: Iterable[HeldDevices]) -> Taken:
    """All devices that claims hold."""
    held: dict[str, set[str]] = defaultdict(set)
    for claim in claims:
        for pool, device in claim.devices:
            held[pool].add(device)
    return {pool: frozenset(names) for pool, names in held.items()}


class SlicesByNode:
    """The slices in force of every node; safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._slices: dict[str, dict[str, ResourceSlice]] = defaultdict(dict)

    def take(self, change: Change[ResourceSlice]) -> frozenset[str]:
        """Learn of a change; the nodes it is about."""
        old = change.old.node if change.old else ""
        new = change.new.node if change.new else ""
        with self._lock:
            if old:
                self._slices[old].pop(change.key, None)
                if not self._slices[old]:
                    del self._slices[old]
            if new and change.new is not None:
                self._slices[new][change.key] = change.new
        return frozenset(filter(None, (old, new)))

    def of(self, node: str) -> tuple[ResourceSlice, ...]:
        """A node's slices; none while its pool is being written anew."""
        with self._lock:
            found = dict(self._slices.get(node) or {})
        return current(found[key] for key in sorted(found))

    def nodes(self) -> frozenset[str]:
        """Nodes that have any."""
        with self._lock:
            return frozenset(self._slices)
