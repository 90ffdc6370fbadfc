"""What about the nodes is not as it should be: reports not believed, kinds nobody can select."""

from collections.abc import Iterator

from shipfitter.core.inventory import NodeCapacity, Pool
from shipfitter.decide.world import World

MOST_REMARKS = 3  # nodes whose reports a condition quotes


def doubts(pools: tuple[Pool, ...], world: World) -> list[str]:
    """Sentences for the condition, each with its way out; none while all is well."""
    return [*_reports(world), *_selection(pools, world)]


def _reports(world: World) -> Iterator[str]:
    remarks = {node.name: node.remark for node in world.nodes if node.remark}
    yield from (f"{name}: {remarks[name]}" for name in sorted(remarks)[:MOST_REMARKS])
    if len(remarks) > MOST_REMARKS:
        yield f"and {len(remarks) - MOST_REMARKS} more nodes"


def _selection(pools: tuple[Pool, ...], world: World) -> Iterator[str]:
    """Pools that are sized by the smallest of what a pod may get there."""
    nodes = {(node.name, node.resource_name): node for node in world.nodes}
    for pool in pools:
        if pool.selector_is_exact:
            continue
        members = [
            nodes[node.name, pool.resource_name]
            for node in pool.nodes
            if (node.name, pool.resource_name) in nodes
        ]
        if any(map(_is_mixed, members)):
            yield (
                f"nodes of pool {pool.name} mix GPUs, so it is sized by the smallest: "
                f"spec.gpus.allocation DRA can ask for one kind"
            )
        elif not world.settings.label_nodes:
            yield (
                f"no label tells the nodes of pool {pool.name} from others with GPUs, so it is "
                f"sized by the smallest: the chart's value capacity.labelNodes writes one"
            )


def _is_mixed(node: NodeCapacity) -> bool:
    return len({device.product for device in node.devices if device.product}) > 1
