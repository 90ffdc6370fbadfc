"""What every node offers, from Node and GPUNode; tells when planning would differ."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from shipfitter.core.inventory import CapacitySource, NodeCapacity
from shipfitter.units import MIB

ReadCapacity = Callable[[Mapping[str, Any], Mapping[str, Any] | None, int], NodeCapacity | None]
ObjectOf = Callable[[str], Mapping[str, Any] | None]  # node name → trimmed object

FOREIGN_STEP_BYTES = 256 * MIB  # other programs' memory breathes; less than this is no news


class CapacityView:
    """NodeCapacity by node name, with nothing used; `on_change` hears what matters for plans."""

    def __init__(
        self,
        read_capacity: ReadCapacity,
        *,
        node_of: ObjectOf,
        gpu_node_of: ObjectOf,
        on_change: Callable[[str], None] = lambda name: None,
    ) -> None:
        self._read_capacity = read_capacity
        self._node_of = node_of
        self._gpu_node_of = gpu_node_of
        self._on_change = on_change
        self._lock = threading.Lock()
        self._capacities: dict[str, NodeCapacity] = {}
        self._announced: dict[str, NodeCapacity] = {}  # as of the last `on_change`

    def refresh(self, name: str) -> None:
        """One node as its objects say now; a node without GPUs is no node for us."""
        with self._lock:
            node = self._node_of(name)
            capacity = self._read_capacity(node, self._gpu_node_of(name), 0) if node else None
            if capacity is None or not (capacity.devices or capacity.allocatable_gpus):
                self._capacities.pop(name, None)
                news = self._announced.pop(name, None) is not None
            else:
                self._capacities[name] = capacity
                news = _matters(self._announced.get(name), capacity)
                if news:
                    self._announced[name] = capacity
        if news:
            self._on_change(name)

    def nodes(self, used: Mapping[str, Mapping[str, int]]) -> tuple[NodeCapacity, ...]:
        """Every node with what is used of it, by name."""
        with self._lock:
            capacities = sorted(self._capacities.values(), key=lambda each: each.name)
        return tuple(
            replace(node, used_gpus=used[node.name].get(node.resource_name, 0))
            if node.name in used
            else node
            for node in capacities
        )


def _matters(before: NodeCapacity | None, after: NodeCapacity) -> bool:
    """True where a plan could differ: not by the source, nor by the breathing of foreign memory."""
    if before is None or _skeleton(before) != _skeleton(after):
        return True
    return any(
        abs(one.foreign_used_bytes - other.foreign_used_bytes) >= FOREIGN_STEP_BYTES
        for one, other in zip(before.devices, after.devices, strict=True)
    )


def _skeleton(capacity: NodeCapacity) -> NodeCapacity:
    devices = tuple(replace(device, foreign_used_bytes=0) for device in capacity.devices)
    return replace(capacity, devices=devices, source=CapacitySource.MEASURED)
