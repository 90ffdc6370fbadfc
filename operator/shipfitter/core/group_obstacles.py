"""What keeps a replica from spanning nodes where only that would fit, and the way out."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from shipfitter.core.alternatives import allows, named, short
from shipfitter.core.candidate import Sizing
from shipfitter.core.intent import Intent
from shipfitter.core.inventory import Pool, PoolNode
from shipfitter.core.nofit import NoFit

if TYPE_CHECKING:
    from shipfitter.core.plan import Plan

LEADER_WORKER_SET_MISSING = "LeaderWorkerSetMissing"
INSTALL = (
    "this cluster has no LeaderWorkerSet (leaderworkerset.x-k8s.io/v1) to run a replica as a group "
    "of pods: install its controller, and the plan follows by itself"
)

Solve = Callable[[Intent, tuple[Pool, ...]], "Plan | NoFit"]


def group_wish(intent: Intent, pools: tuple[Pool, ...], solve: Solve) -> Sizing | None:
    """The sizing over several nodes that would be planned, were groups possible and nodes free."""
    free = tuple(_all_free(pool) for pool in pools)
    planned = solve(replace(intent, spans_nodes=True), free)
    if isinstance(planned, NoFit):
        return None
    sizing = planned.variants[0].sizing
    return sizing if sizing.settings.layout.nodes > 1 else None


def _all_free(pool: Pool) -> Pool:
    nodes = tuple(replace(node, free_gpus=pool.gpus_per_node) for node in pool.nodes)
    return replace(pool, nodes=nodes)


def explained(intent: Intent, pools: tuple[Pool, ...], refused: NoFit, solve: Solve) -> NoFit:
    """The refusal, or what is in the way of a replica over several nodes that would fit."""
    sizing = group_wish(intent, pools, solve)
    if sizing is None:
        return refused
    layout = sizing.settings.layout
    fits = f"{named(sizing)} would fit ({allows(sizing)})"
    if not intent.spans_nodes:
        return replace(
            refused,
            reason="DoesNotFit" if intent.one_node_because else LEADER_WORKER_SET_MISSING,
            problem=f"{fits}, but {intent.one_node_because or INSTALL}. {refused.problem}",
        )
    whole = sum(node.free_gpus >= layout.gpus_per_node for node in _nodes(sizing.pool, pools))
    return NoFit(
        reason="WaitingForGpu",
        problem=f"{fits}; {short(sizing.model)} waits for {layout.nodes} nodes of pool "
        f"{sizing.pool.name} with {layout.gpus_per_node} free GPUs each at the same time: "
        f"{'none has' if not whole else f'only {whole} has'} them now",
    )


def _nodes(pool: Pool, pools: tuple[Pool, ...]) -> tuple[PoolNode, ...]:
    return next(each.nodes for each in pools if each.name == pool.name)
