"""NVLink islands: whether tensor parallel ranks find GPUs that NVLink joins, and how many do.

The kubelet chooses the GPUs; NVIDIA's device plugin advises it to take them from one island where
that is possible. Source: NVIDIA/k8s-device-plugin, internal/rm/allocate.go (aligned allocation).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Island:
    """GPUs of one node that reach each other over NVLink."""

    gpus: int
    free: int | None = None  # that no pod holds; None where nobody says which GPUs pods hold

    def surely_free(self, used_gpus: int) -> int:
        """The least that is free, with so many GPUs of the node in use."""
        return max(0, self.gpus - used_gpus) if self.free is None else self.free


def islands_of(status: Mapping[str, Any], *, current: bool) -> tuple[Island, ...]:
    """The islands an agent saw; what is free in them only if its report is `current`."""
    gpus = [gpu for gpu in status.get("gpus") or () if isinstance(gpu, Mapping)]
    held = status.get("allocated") if current else None
    found = []
    for island in status.get("nvlinkIslands") or ():
        members = [gpus[place] for place in island if 0 <= place < len(gpus)]
        free = None
        if held is not None:
            free = sum(_is_healthy(gpu) and gpu.get("uuid") not in held for gpu in members)
        found.append(Island(gpus=len(members), free=free))
    return tuple(found)


def _is_healthy(gpu: Mapping[str, Any]) -> bool:
    return bool((gpu.get("health") or {}).get("state", "Healthy") == "Healthy")


def given_back(islands: Iterable[Island], gpus: int) -> tuple[Island, ...]:
    """The islands with so many GPUs of ours counted as free: of which they are, nobody says.

    They are taken to be of one island, whichever it is: that is how they are handed out.
    """
    return tuple(
        each if each.free is None else replace(each, free=min(each.gpus, each.free + gpus))
        for each in islands
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeIslands:
    """One node's free GPUs, and those of them in each island; no islands where none are known."""

    free_gpus: int
    sizes: tuple[int, ...] = ()
    free: tuple[int, ...] = ()  # the least that is free in each
    is_known: bool = True  # which GPUs are held, not only how many

    def groups(self, gpus: int) -> tuple[int, int]:
        """Groups of so many GPUs that find room now, and those of them inside an island."""
        room = self.free_gpus // gpus
        return room, min(room, sum(free // gpus for free in self.free))


def crossing(nodes: Iterable[NodeIslands], gpus: int, groups: int) -> str:
    """What to say where some of the groups must talk over PCIe; empty where none has to.

    >>> crossing([NodeIslands(free_gpus=4, sizes=(4, 4), free=(2, 2))], 4, 1)
    'no NVLink island has 4 GPUs free (at most 2), so its ranks talk over PCIe'
    """
    nodes = [node for node in nodes if node.sizes]
    if gpus < 2 or not nodes:
        return ""
    largest = max(size for node in nodes for size in node.sizes)
    if gpus > largest:
        return f"no NVLink island has {gpus} GPUs (at most {largest}), so its ranks talk over PCIe"
    room = [node.groups(gpus) for node in nodes]
    wanted = min(groups, sum(all_of_them for all_of_them, _ in room))
    inside = sum(in_islands for _, in_islands in room)
    if inside >= wanted:
        return ""
    if inside and all(node.is_known for node in nodes):
        return f"only {inside} of {wanted} find {gpus} free GPUs in one NVLink island"
    if not all(node.is_known for node in nodes):
        return (
            f"whether one NVLink island has {gpus} GPUs free is not known, for nobody says which "
            "are held: the chart's value agent.podResources lets agents ask the kubelet"
        )
    most = max(free for node in nodes for free in node.free)
    return f"no NVLink island has {gpus} GPUs free (at most {most}), so its ranks talk over PCIe"
