"""What would fit, were it not for a quota of the namespace."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from shipfitter.core.alternatives import allows, named
from shipfitter.core.intent import Intent
from shipfitter.core.inventory import Pool
from shipfitter.core.nofit import NoFit
from shipfitter.core.quota import GpuQuota, lowest

if TYPE_CHECKING:
    from shipfitter.core.plan import Plan

QUOTA_EXCEEDED = "QuotaExceeded"

Solve = Callable[[Intent, tuple[Pool, ...]], "Plan | NoFit"]


def beyond_quota(intent: Intent, pools: tuple[Pool, ...], refused: NoFit, solve: Solve) -> NoFit:
    """The refusal, or the quota that is smaller than one replica of what would fit."""
    if not intent.quotas:
        return refused
    planned = solve(replace(intent, quotas=()), pools)
    if isinstance(planned, NoFit):
        return refused
    sizing = planned.variants[0].sizing
    quota = lowest(intent.quotas, sizing.pool.resource_name)
    if quota is None:
        return refused
    return NoFit(
        reason=QUOTA_EXCEEDED,
        problem=f"{named(sizing)} would fit ({allows(sizing)}), but {quota} and a replica takes "
        f"{sizing.gpus_per_replica}: {raise_to(quota, sizing.gpus_per_replica)}, or name a smaller "
        "model among spec.model.alternatives",
    )


def raise_to(quota: GpuQuota, gpus: int) -> str:
    """What an administrator does about it."""
    return f"raise its {quota.key} to {quota.used_by_others + gpus}"
