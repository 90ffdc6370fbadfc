"""Devices that claims can take: of each kind on a node, how many are there and how many are left.

A claim says which product or MIG profile it wants, so on a mixed node every kind is a capacity of
its own. Partitions share a GPU's counters: what is left of one kind depends on all that is taken.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from shipfitter.core.resource_slices import DRIVER, GPU, Counters, ResourceSlice, SlicedDevice

MIG_CLASS = "mig.nvidia.com"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimable:
    """One kind of device on one node."""

    resource_name: str  # ours: the class and what the claim selects; no pod asks for it
    devices: tuple[SlicedDevice, ...]  # as many as could be taken at once from an idle node
    taken: int = 0
    left: int = 0


def claim_resource(sliced: SlicedDevice) -> str:
    """The name under which we count devices like this one.

    >>> claim_resource(SlicedDevice(name="gpu-0", kind="gpu", product="NVIDIA-L4"))
    'gpu.nvidia.com/NVIDIA-L4'
    """
    if sliced.kind == GPU:
        return f"{DRIVER}/{sliced.product}"
    return f"{MIG_CLASS}/{sliced.product}-MIG-{sliced.mig_profile}"


def is_claim_resource(resource_name: str) -> bool:
    """Whether a name is one of ours for devices that only a claim can take."""
    return resource_name.startswith((f"{DRIVER}/", f"{MIG_CLASS}/"))


def claimables(
    slices: Iterable[ResourceSlice], taken_names: Iterable[str] = ()
) -> tuple[Claimable, ...]:
    """Every kind of device in a node's slices, by name; `taken_names` are allocated devices."""
    slices = tuple(slices)
    devices = [device for each in slices for device in each.devices]
    taken_names = frozenset(taken_names)
    taken = [device for device in devices if device.name in taken_names]
    limits: Counters = {name: most for each in slices for name, most in each.counters.items()}
    kinds: dict[str, list[SlicedDevice]] = {}
    for device in devices:
        kinds.setdefault(claim_resource(device), []).append(device)
    return tuple(
        Claimable(
            resource_name=name,
            devices=_together(members, limits, ()),
            taken=sum(device in taken for device in members),
            left=len(
                _together([each for each in members if each.healthy], limits, taken, taken_names)
            ),
        )
        for name, members in sorted(kinds.items())
    )


def _together(
    members: Iterable[SlicedDevice],
    limits: Counters,
    taken: Iterable[SlicedDevice],
    taken_names: frozenset[str] = frozenset(),
) -> tuple[SlicedDevice, ...]:
    """As many of the members as the counters allow beside what is taken.

    Greedy, fewest counters first: placements of one profile are of equal size, so no other order
    does better but by the alignment of the first.
    """
    used: Counter[tuple[str, str]] = Counter()
    for device in taken:
        used.update(device.consumes)
    found = []
    for device in sorted(members, key=lambda each: (len(each.consumes), each.name)):
        if device.name in taken_names or not _room(device.consumes, used, limits):
            continue
        used.update(device.consumes)
        found.append(device)
    return tuple(found)


def _room(consumes: Counters, used: Mapping[tuple[str, str], int], limits: Counters) -> bool:
    return all(used.get(name, 0) + more <= limits.get(name, 0) for name, more in consumes.items())
