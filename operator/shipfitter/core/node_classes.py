"""Which nodes are alike: of one class, and of one size within it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter

from shipfitter.core.capacity import Device, NodeCapacity
from shipfitter.core.gpus import resolve_product
from shipfitter.core.robust import close, groups_around_medians
from shipfitter.core.selectors import PLATFORM_KEYS, Signature, signature

_SIZE = attrgetter("total_bytes", "product")


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class NodeClass:
    """What nodes of one pool have in common, apart from their bytes."""

    products: tuple[str, ...]  # more than one on a mixed node
    gpus_per_node: int  # as built in: a broken GPU does not make another class of node
    resource_name: str
    mig_profile: str
    sharing: str
    replicas_per_gpu: int
    platform: tuple[str, ...]

    @property
    def kind_of_gpu(self) -> "NodeClass":
        """The class whatever the number of GPUs: its nodes may stand in for each other."""
        return replace(self, gpus_per_node=0)


@dataclass(frozen=True, kw_only=True)
class NodeGroup:
    """Nodes of one class and one size; of several where no label separates them."""

    classes: frozenset[NodeClass]
    nodes: tuple[NodeCapacity, ...]  # those that can take pods now
    signatures: frozenset[Signature]  # of these and of their kind that cannot, such as cordoned
    is_joined: bool = False  # of nodes that differ, because no label separates them
    is_outlier: bool = False  # one node alone, with less than such GPUs have elsewhere

    @cached_property
    def usable_bytes(self) -> int:
        """What CUDA calls total on the smallest device a pod may get here."""
        return min(map(usable_bytes, self.nodes))

    @property
    def resource_name(self) -> str:
        """What pods ask for."""
        return next(iter(self.classes)).resource_name


def usable_devices(node: NodeCapacity) -> tuple[Device, ...]:
    """The devices an engine may get, smallest first: the scheduler does not say which one."""
    healthy = [device for device in node.devices if device.healthy and device.total_bytes > 0]
    return tuple(sorted(healthy, key=_SIZE))


def usable_bytes(node: NodeCapacity) -> int:
    """What CUDA calls total on the node's smallest usable device."""
    return usable_devices(node)[0].total_bytes


def node_class(node: NodeCapacity) -> NodeClass | None:
    """The node's class; None when it has no device an engine could use."""
    usable = usable_devices(node)
    if not usable:
        return None
    return NodeClass(
        products=tuple(sorted({device.product for device in node.devices if device.product})),
        gpus_per_node=len(node.devices),
        resource_name=node.resource_name,
        mig_profile=usable[0].mig_profile,
        sharing=node.sharing,
        replicas_per_gpu=node.replicas_per_gpu,
        platform=tuple(node.labels.get(key, "") for key in PLATFORM_KEYS),
    )


def is_available(node: NodeCapacity) -> bool:
    """Whether the scheduler may put a pod with GPUs there."""
    return node.ready and node.schedulable and node.allocatable_gpus > 0


def _tells_too_little(node: NodeCapacity) -> bool:
    """Whether its smallest GPU has a tenth less than its product has with error correction on.

    A modified or broken card, another card of that name, or a lie; drivers differ by 2 %.
    """
    smallest = usable_devices(node)[0]
    row = resolve_product(smallest.product)
    if row is None or row.unified or smallest.mig_profile:
        return False
    least_bytes = row.total_bytes(ecc=True) - row.reserved_bytes
    return smallest.total_bytes * 10 < least_bytes * 9


def node_groups(nodes: Iterable[NodeCapacity]) -> list[NodeGroup]:
    """Nodes with devices by class, then by bytes around the median of those that can take pods."""
    classes: dict[NodeClass, list[NodeCapacity]] = {}
    for node in nodes:
        found = node_class(node)
        if found:
            classes.setdefault(found, []).append(node)
    most_bytes: dict[NodeClass, int] = {}
    for found, members in classes.items():
        sizes = [usable_bytes(node) for node in members if is_available(node)]
        kind = found.kind_of_gpu
        most_bytes[kind] = max(most_bytes.get(kind, 0), *sizes, 0)
    return [
        group
        for found in sorted(classes)
        for group in _groups_of_class(found, classes[found], most_bytes[found.kind_of_gpu])
    ]


def _groups_of_class(
    found: NodeClass, members: list[NodeCapacity], most_bytes: int
) -> Iterable[NodeGroup]:
    available = [(node, usable_bytes(node)) for node in members if is_available(node)]
    away = [node for node in members if not is_available(node)]
    for sizes in groups_around_medians([size for _, size in available]):
        nodes = tuple(node for node, size in available if size in sizes)
        kin = [node for node in away if close(usable_bytes(node), sizes[0])]
        away = [node for node in away if not close(usable_bytes(node), sizes[0])]
        yield NodeGroup(
            classes=frozenset({found}),
            nodes=nodes,
            signatures=frozenset(signature(node.labels) for node in (*nodes, *kin)),
            is_outlier=len(nodes) == 1
            and (not close(sizes[-1], most_bytes) or _tells_too_little(nodes[0])),
        )
    if away:
        yield NodeGroup(
            classes=frozenset({found}),
            nodes=(),
            signatures=frozenset(signature(node.labels) for node in away),
        )
