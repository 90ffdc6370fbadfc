"""Why replicas of a plan wait, beyond what their pods say: quotas, and pools that do not serve."""

from collections.abc import Iterator, Mapping

from shipfitter.core.candidates import usable_pools
from shipfitter.core.fitting import best_on
from shipfitter.core.intent import Intent
from shipfitter.core.inventory import Pool
from shipfitter.core.plan import Plan
from shipfitter.core.quota import GpuQuota
from shipfitter.core.quota_obstacle import raise_to
from shipfitter.core.resplit import placed
from shipfitter.core.room import Room

MOST_HINTS = 2


def held_back(intent: Intent, plan: Plan) -> tuple[int, str]:
    """How many replicas quotas allow, and the quota that allows fewer than are wanted."""
    room = Room((), intent.quotas)
    allowed = 0
    for variant in plan.variants:
        count = min(variant.replicas, room.allowed(variant.sizing))
        room.take(variant.sizing, count)
        allowed += count
    for quota in sorted(intent.quotas, key=lambda each: (each.left, each.name)):
        wanted = _counted(quota, plan)
        if wanted > quota.left:
            return allowed, f"{quota}: {raise_to(quota, wanted)} for all {intent.replicas} replicas"
    return allowed, ""


def _counted(quota: GpuQuota, plan: Plan) -> int:
    """GPUs of the plan that a quota counts."""
    return sum(
        each.replicas * each.sizing.gpus_per_replica
        for each in plan.variants
        if quota.counts(each.sizing.pool.resource_name)
    )


def other_pools(
    intent: Intent, pools: tuple[Pool, ...], plan: Plan, held: Mapping[str, int]
) -> str:
    """Free GPUs that replicas without one cannot have, and what would let them."""
    if sum(placed(intent, pools, plan.variants, held)) >= intent.replicas:
        return ""
    return "; ".join(list(_obstacles(intent, pools, plan))[:MOST_HINTS])


def _obstacles(intent: Intent, pools: tuple[Pool, ...], plan: Plan) -> Iterator[str]:
    first = plan.variants[0].sizing
    taken = {variant.sizing.pool.name for variant in plan.variants}
    free = (p for p in usable_pools(intent, pools) if p.free_gpus and p.name not in taken)
    for pool in free if intent.may_spread else ():
        sizing = best_on(intent, pool, first.model, point=False)
        if sizing is not None and sizing.max_model_len < first.max_model_len:
            yield (
                f"pool {pool.name} has free GPUs and holds max_model_len {sizing.max_model_len}: "
                f"with spec.workload.maxModelLen.preferred {sizing.max_model_len} all replicas "
                "have that length and some go there"
            )
