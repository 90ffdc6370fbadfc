"""What of a kept plan still holds, and how much of it stays in a fresh one."""

from collections.abc import Mapping
from dataclasses import replace

from shipfitter.core.candidate import Sizing
from shipfitter.core.engines import EngineSettings
from shipfitter.core.fitting import anew
from shipfitter.core.intent import Intent, Verdict
from shipfitter.core.inventory import CapacitySource, Pool
from shipfitter.core.plan import NoFit, Plan, VariantPlan, solve
from shipfitter.core.resplit import placed, rescaled
from shipfitter.core.sizing import holds
from shipfitter.decide.resize import gain

Variants = tuple[VariantPlan, ...]


def standing(kept: Plan, pools: tuple[Pool, ...]) -> tuple[Variants, Variants]:
    """All variants on their pools as they are now; and those whose pool is gone or too small."""
    by_name = {pool.name: pool for pool in pools}
    variants, lost = [], []
    for variant in kept.variants:
        pool = by_name.get(variant.sizing.pool.name)
        sizing = _on(pool, variant.sizing) if pool else None
        variants.append(replace(variant, sizing=sizing) if sizing else variant)
        if sizing is None:
            lost.append(variant)
    return tuple(variants), tuple(lost)


def _on(pool: Pool, kept: Sizing) -> Sizing | None:
    """The sizing on its pool as it is now; None where the engine would no longer start there.

    Where the pool offers what it did, engines prove the plan: another release's arithmetic, or a
    calibration, is no reason to end them.
    """
    sizing = holds(kept, pool)
    before = kept.pool
    as_promised = (
        pool.total_bytes >= before.total_bytes
        and pool.foreign_used_bytes <= before.foreign_used_bytes
        and len(pool.nodes) >= kept.settings.layout.nodes
        and before.source is not CapacitySource.EXPECTED
    )
    return replace(kept, pool=pool) if sizing is None and as_promised else sizing


def off_lost_pools(
    intent: Intent, pools: tuple[Pool, ...], kept: Plan, held: Mapping[str, int]
) -> Variants:
    """The plan off lost pools; of what runs there only that stays which finds no other place."""
    everything, lost = standing(kept, pools)
    variants = rescaled(intent, pools, [v for v in everything if v not in lost], held)
    rest = sum(v.replicas for v in variants) - sum(placed(intent, pools, variants, held))
    left_behind = []
    for variant in lost:
        count = min(rest, variant.replicas, held.get(variant.sizing.pool.name, 0))
        rest -= count
        if count:
            left_behind.append(replace(variant, replicas=count))
    staying = sum(variant.replicas for variant in left_behind)
    first = replace(variants[0], replicas=variants[0].replicas - staying)
    return (first, *variants[1:], *left_behind)


def beside(intent: Intent, kept: Plan, fresh: Plan, minimum_gain_percent: float) -> Plan:
    """The fresh plan with those variants as they run that it would change for little."""
    running = {_place(variant): variant for variant in kept.variants}
    variants = []
    for variant in fresh.variants:
        known = running.get(_place(variant))
        if known is not None and _serves_as_well(intent, known, variant, minimum_gain_percent):
            variants.append(replace(known, replicas=variant.replicas))
        else:
            variants.append(variant)
    return replace(fresh, variants=tuple(variants))


def stepped_down(
    intent: Intent, pools: tuple[Pool, ...], plan: Plan, concerned: VariantPlan
) -> Plan | NoFit:
    """The plan with one variant smaller; the others stay as they are where the length can stay."""
    others = tuple(variant for variant in plan.variants if variant is not concerned)
    if not others:
        return solve(intent, pools)
    sizing = concerned.sizing
    point = sizing.verdict is Verdict.BORDERLINE
    smaller = anew(intent, sizing, sizing.max_model_len, point=point)
    if smaller is not None:
        stepped = VariantPlan(sizing=smaller, replicas=concerned.replicas)
        variants = (stepped if each is concerned else each for each in plan.variants)
        return replace(plan, variants=tuple(variants))
    fresh = solve(intent, pools)
    if isinstance(fresh, NoFit):
        return fresh
    return beside(intent, replace(plan, variants=others), fresh, 0.0)


def same_figures(plan: Plan, other: Plan) -> bool:
    """Whether the engines of both would be started alike."""
    return {place: each[:2] for place, each in _content(plan).items()} == {
        place: each[:2] for place, each in _content(other).items()
    }


def back_to(intent: Intent, pools: tuple[Pool, ...], plan: Plan, last_good: Plan) -> Plan:
    """The earlier plan with as many replicas as are wanted now; what is alike stays as it is."""
    running, content = {_place(v): v for v in plan.variants}, _content(plan)
    variants = []
    for variant in last_good.variants:
        place = _place(variant)
        alike = place in content and content[place][:2] == _figures(variant)[:2]
        kept = replace(running[place], replicas=variant.replicas) if alike else variant
        variants.append(kept if alike else replace(kept, decided_at=""))
    return replace(last_good, variants=rescaled(intent, pools, variants))


def _place(variant: VariantPlan) -> tuple[str, int, int, int]:
    layout = variant.sizing.settings.layout
    return (
        variant.sizing.pool.name,
        layout.tensor_parallel_size,
        layout.pipeline_parallel_size,
        layout.nodes,
    )


def _serves_as_well(
    intent: Intent, known: VariantPlan, fresh: VariantPlan, minimum_gain_percent: float
) -> bool:
    one, other = known.sizing, fresh.sizing
    return (
        one.model.uri == other.model.uri
        and one.max_model_len == other.max_model_len
        and one.settings.kv_cache_dtype == other.settings.kv_cache_dtype
        and gain(intent, one, other).percent < max(minimum_gain_percent, 1e-9)
    )


def at_rest(kept: Plan, wish: Plan) -> bool:
    """Whether the wish is what is there."""
    return _content(kept) == _content(wish)


def _content(plan: Plan) -> dict[tuple[str, int, int, int], tuple[str, EngineSettings, int]]:
    return {_place(variant): _figures(variant) for variant in plan.variants}


def _figures(variant: VariantPlan) -> tuple[str, EngineSettings, int]:
    return variant.sizing.model.uri, variant.sizing.settings, variant.replicas
