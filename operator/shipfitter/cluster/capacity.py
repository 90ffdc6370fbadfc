"""What every node offers, from Node, GPUNode and slices; tells when planning would differ."""

import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from shipfitter.cluster.dra import Taken
from shipfitter.core.capacity import CapacitySource, NodeCapacity
from shipfitter.core.expected import ExpectedNodes, declared_device
from shipfitter.core.node_capacity import node_capacities
from shipfitter.core.resource_slices import ResourceSlice
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
    slices: tuple[ResourceSlice, ...]
    capacities: Capacities

    def held(self, taken: Taken) -> frozenset[str]:
        """The names of its devices that claims hold."""
        pools = {each.pool for each in self.slices}
        return frozenset().union(*(taken.get(pool, ()) for pool in pools))


class CapacityView:
    """Every node's capacities with nothing used; `on_change` hears what matters for plans."""

    def __init__(
        self,
        *,
        node_of: Callable[[str], Body | None],
        gpu_node_of: Callable[[str], Body | None],
        slices_of: Callable[[str], tuple[ResourceSlice, ...]] = lambda name: (),
        mapped: Callable[[], Collection[str]] = tuple,
        declared: Collection[ExpectedNodes] = (),
        on_change: Callable[[str], None] = lambda name: None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._node_of = node_of
        self._gpu_node_of = gpu_node_of
        self._slices_of = slices_of
        self._mapped = mapped  # extended resources that device classes stand for
        self._declared = declared
        self._on_change = on_change
        self._clock = now
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

    def nodes(
        self, used: Mapping[str, Mapping[str, int]], taken: Taken | None = None
    ) -> Capacities:
        """Every node with what pods use of it and claims hold of its slices, by name."""
        now = self._clock()
        with self._lock:
            for name, seen in self._nodes.items():
                if _silent(seen, now) != seen.stale:
                    self._nodes[name] = self._read(seen.node, seen.gpu_node)
            capacities = [
                each
                for name in sorted(self._nodes)
                for each in self._now(self._nodes[name], taken or {})
            ]
        return tuple(
            replace(each, used_gpus=each.used_gpus + used[each.name].get(each.resource_name, 0))
            if each.name in used and not each.from_slices
            else each
            for each in capacities
        )

    def _now(self, seen: _Node, taken: Taken) -> Capacities:
        held = seen.held(taken)
        return self._capacities(seen, held) if held else seen.capacities

    def _read(self, node: Body, gpu_node: Body | None) -> _Node:
        written = ((gpu_node or {}).get("status") or {}).get("observedAt")
        observed = _seconds(written) if written else float("inf")
        slices = self._slices_of(str(node["metadata"]["name"]))
        seen = _Node(node, gpu_node, observed, stale=False, slices=slices, capacities=())
        seen.stale = _silent(seen, self._clock())
        seen.capacities = self._capacities(seen, frozenset())
        return seen

    def _capacities(self, seen: _Node, held: frozenset[str]) -> Capacities:
        return tuple(
            each
            for each in node_capacities(
                seen.node,
                seen.gpu_node,
                {},
                stale=seen.stale,
                slices=seen.slices,
                taken=held,
                mapped=self._mapped(),
                declared=declared_device(self._declared, seen.node["metadata"].get("labels") or {}),
            )
            if each.devices or each.allocatable_gpus
        )


def _seconds(written: str) -> float:
    try:
        return datetime.fromisoformat(written).timestamp()
    except ValueError:  # what an agent writes is not to be trusted
        return 0.0


def _silent(seen: _Node, now: float) -> bool:
    return now - seen.observed_seconds > SILENT_SECONDS


def _matters(before: Capacities, after: Capacities) -> bool:
    """True where a plan could differ: not by source, holders, or breathing of foreign memory."""
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
    # Who holds which GPU changes with every pod, and pods are heard of by themselves.
    islands = tuple(replace(island, free=None) for island in capacity.islands)
    return replace(capacity, devices=devices, islands=islands, source=CapacitySource.MEASURED)
