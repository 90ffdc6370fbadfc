"""What every node offers, from Node and GPUNode; tells when planning would differ."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from shipfitter.core.capacity import CapacitySource, NodeCapacity
from shipfitter.core.node_capacity import node_capacities
from shipfitter.units import MIB

Body = Mapping[str, Any]
Capacities = tuple[NodeCapacity, ...]  # of one node: one for each GPU resource it hands out

FOREIGN_STEP_BYTES = 256 * MIB  # other programs' memory breathes; less than this is no news
# The agent writes every 10 min ± 20 % even where nothing changed; two missed writes are silence.
SILENT_SECONDS = 1800.0


@dataclass(slots=True)
class _Node:
    node: Body
    gpu_node: Body | None
    observed_seconds: float  # when the agent last wrote; infinite where there is no agent
    stale: bool
    capacities: Capacities


class CapacityView:
    """Every node's capacities with nothing used; `on_change` hears what matters for plans."""

    def __init__(
        self,
        *,
        node_of: Callable[[str], Body | None],
        gpu_node_of: Callable[[str], Body | None],
        on_change: Callable[[str], None] = lambda name: None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._node_of = node_of
        self._gpu_node_of = gpu_node_of
        self._on_change = on_change
        self._now = now
        self._lock = threading.Lock()
        self._nodes: dict[str, _Node] = {}
        self._announced: dict[str, Capacities] = {}  # as of the last `on_change`

    def refresh(self, name: str) -> None:
        """One node as its objects say now; a node without GPUs is no node for us."""
        with self._lock:
            node = self._node_of(name)
            seen = self._read(node, self._gpu_node_of(name)) if node else None
            capacities = seen.capacities if seen else ()
            if seen is None or not capacities:
                self._nodes.pop(name, None)
            else:
                self._nodes[name] = seen
            news = _matters(self._announced.get(name, ()), capacities)
            if news:
                self._announced[name] = capacities
            if not capacities:
                self._announced.pop(name, None)
        if news:
            self._on_change(name)

    def nodes(self, used: Mapping[str, Mapping[str, int]]) -> Capacities:
        """Every node with what is used of it, by name."""
        now = self._now()
        with self._lock:
            for name, seen in self._nodes.items():
                if _silent(seen, now) != seen.stale:
                    self._nodes[name] = self._read(seen.node, seen.gpu_node)
            capacities = [
                each for name in sorted(self._nodes) for each in self._nodes[name].capacities
            ]
        return tuple(
            replace(each, used_gpus=used[each.name].get(each.resource_name, 0))
            if each.name in used
            else each
            for each in capacities
        )

    def _read(self, node: Body, gpu_node: Body | None) -> _Node:
        written = ((gpu_node or {}).get("status") or {}).get("observedAt")
        observed = datetime.fromisoformat(written).timestamp() if written else float("inf")
        seen = _Node(node, gpu_node, observed, stale=False, capacities=())
        seen.stale = _silent(seen, self._now())
        seen.capacities = tuple(
            each
            for each in node_capacities(node, gpu_node, {}, stale=seen.stale)
            if each.devices or each.allocatable_gpus
        )
        return seen


def _silent(seen: _Node, now: float) -> bool:
    return now - seen.observed_seconds > SILENT_SECONDS


def _matters(before: Capacities, after: Capacities) -> bool:
    """True where a plan could differ: not by the source, nor by the breathing of foreign memory."""
    if before == after:
        return False
    if len(before) != len(after):
        return True
    if [_skeleton(each) for each in before] != [_skeleton(each) for each in after]:
        return True
    return any(
        abs(one.foreign_used_bytes - other.foreign_used_bytes) >= FOREIGN_STEP_BYTES
        for old, new in zip(before, after, strict=True)
        for one, other in zip(old.devices, new.devices, strict=True)
    )


def _skeleton(capacity: NodeCapacity) -> NodeCapacity:
    devices = tuple(replace(device, foreign_used_bytes=0) for device in capacity.devices)
    return replace(capacity, devices=devices, source=CapacitySource.MEASURED)
