"""Telling groups of nodes apart by labels, and joining those that no label separates."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations

from shipfitter.core.node_classes import NodeGroup, usable_devices
from shipfitter.core.robust import close
from shipfitter.core.selectors import Signature, selects, shortest_selector


@dataclass(frozen=True, slots=True, kw_only=True)
class Separated:
    """A group and the labels that select it; exact when they select no other node with GPUs."""

    group: NodeGroup
    selector: Mapping[str, str]
    selector_is_exact: bool


def separate(groups: Iterable[NodeGroup], others: frozenset[Signature]) -> list[Separated]:
    """Every group with its selector, after joining those that labels cannot separate.

    `others` are the nodes without GPUs. A lone outlier is not joined with the fleet whose labels it
    shares: one lying or broken node would shrink them all. Nor is a pool whose pods may stray onto
    larger GPUs, where none of those GPUs' pods stray back: one bare node would shrink a fleet.
    """
    groups = list(groups)
    while True:
        separated = [_separated(group, groups, others) for group in groups]
        pair = next(
            (pair for pair in combinations(separated, 2) if _must_join(*pair)),
            None,
        )
        if pair is None:
            return [found for found in separated if found.group.nodes]
        one, other = (found.group for found in pair)
        groups = [group for group in groups if group not in (one, other)]
        groups.append(_joined(one, other))


def _separated(
    group: NodeGroup, groups: list[NodeGroup], others: frozenset[Signature]
) -> Separated:
    rivals = _signatures(
        rival
        for rival in groups
        if rival is not group and rival.resource_name == group.resource_name
    )
    # The same node may offer several resources: it is no bystander of itself.
    bystanders = others | _signatures(
        rival for rival in groups if rival.resource_name != group.resource_name
    )
    selector, exact = shortest_selector(
        group.signatures, rivals, bystanders - group.signatures - rivals
    )
    return Separated(group=group, selector=selector, selector_is_exact=exact)


def _signatures(groups: Iterable[NodeGroup]) -> frozenset[Signature]:
    return frozenset().union(*(group.signatures for group in groups))


def _must_join(one: Separated, other: Separated) -> bool:
    if one.group.resource_name != other.group.resource_name:
        return False  # a pod that asks for one never gets the other
    if not one.group.nodes or not other.group.nodes:
        return False  # nothing can go there now
    smaller, larger = sorted((one, other), key=lambda found: found.group.usable_bytes)
    strays = any(selects(larger.selector, node) for node in smaller.group.signatures)
    reaches = any(selects(smaller.selector, node) for node in larger.group.signatures)
    if not strays and not reaches:
        return False  # labels do it
    if _stand_in(one.group, other.group):
        return False  # the scheduler counts GPUs itself, and bytes are the same
    if not strays and _does_as_well(larger.group, smaller.group):
        return False  # what is sized for the smaller runs on either; nothing of the larger strays
    return not smaller.group.is_outlier


def _does_as_well(larger: NodeGroup, smaller: NodeGroup) -> bool:
    """Whether an engine sized for the smaller GPUs works on the larger ones: whole and as able."""
    whole = all(found.sharing == "none" and not found.mig_profile for found in larger.classes)
    least, most = _capabilities(larger), _capabilities(smaller)
    return whole and bool(least and most) and min(least) >= max(most)


def _capabilities(group: NodeGroup) -> set[tuple[int, int]]:
    """Those of all its GPUs; none where one is not known."""
    found = {device.compute_capability for node in group.nodes for device in usable_devices(node)}
    return set() if None in found else {each for each in found if each}


def _stand_in(one: NodeGroup, other: NodeGroup) -> bool:
    """Whether only the number of GPUs in a node tells the groups apart."""
    kinds = {found.kind_of_gpu for group in (one, other) for found in group.classes}
    return len(kinds) == 1 and close(one.usable_bytes, other.usable_bytes)


def _joined(one: NodeGroup, other: NodeGroup) -> NodeGroup:
    return NodeGroup(
        classes=one.classes | other.classes,
        nodes=tuple(sorted((*one.nodes, *other.nodes), key=lambda node: node.name)),
        signatures=one.signatures | other.signatures,
        is_joined=True,
    )
