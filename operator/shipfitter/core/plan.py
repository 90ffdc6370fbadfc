"""The one solve: wish, model facts, pools and engine in; a Plan, or NoFit with facts, out."""

from dataclasses import dataclass, replace

from shipfitter.core.alternatives import Alternative, FrontierPoint, better_choices, frontier
from shipfitter.core.candidate import Sizing
from shipfitter.core.candidates import usable_pools
from shipfitter.core.fitting import fitting, places, rank
from shipfitter.core.group_obstacles import explained
from shipfitter.core.intent import (
    Intent,
    ModelChoice,
    Prefer,
    SizeFor,
    Verdict,
    Wanted,
)
from shipfitter.core.inventory import CapacitySource, Pool
from shipfitter.core.nofit import NoFit, no_fit
from shipfitter.core.quota_obstacle import beyond_quota
from shipfitter.core.resplit import placed
from shipfitter.core.spread import VariantPlan, least_length, spread
from shipfitter.units import format_gib

__all__ = [
    "Alternative",
    "FrontierPoint",
    "Intent",
    "ModelChoice",
    "NoFit",
    "Plan",
    "Prefer",
    "SizeFor",
    "Sizing",
    "VariantPlan",
    "Verdict",
    "Wanted",
    "solve",
    "solve_bare",
    "with_outlook",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A complete decision."""

    variants: tuple[VariantPlan, ...]
    alternatives: tuple[Alternative, ...]
    frontier: tuple[FrontierPoint, ...]
    why: str  # one sentence: why this GPU and TP


def solve(intent: Intent, pools: tuple[Pool, ...]) -> Plan | NoFit:
    """The plan for a wish on the pools, with what else there would be; or what is missing."""
    found = solve_bare(intent, pools)
    return with_outlook(intent, pools, found) if isinstance(found, Plan) else found


def with_outlook(intent: Intent, pools: tuple[Pool, ...], plan: Plan) -> Plan:
    """The plan with its alternatives and the trade-off on its pool: most of the work of a solve."""
    first = plan.variants[0].sizing
    coming = first.pool.source is CapacitySource.EXPECTED
    alike = (each for each in pools if (each.source is CapacitySource.EXPECTED) is coming)
    usable = usable_pools(intent, tuple(alike))
    return replace(
        plan,
        alternatives=better_choices(intent, usable, first),
        frontier=frontier(intent, first),
    )


def solve_bare(intent: Intent, pools: tuple[Pool, ...]) -> Plan | NoFit:
    """The plan for a wish on the pools, or what is missing. Depends on nothing but its inputs.

    Order: a plan that surely fits before one that may; the first model in the list; one node
    before several, and those only where they are free; the fewest GPUs per replica that reach half
    of what the user said he prefers (else the fewest that meet the minimums); a pool that holds all
    replicas now, then several together; preferred values reached; the smallest GPU; the name. Nodes
    that are only expected come in where no GPU is free that would do.
    """
    there = tuple(pool for pool in pools if pool.source is not CapacitySource.EXPECTED)
    expected = tuple(pool for pool in pools if pool.source is CapacitySource.EXPECTED)
    found = _solve(intent, there, expected)
    if isinstance(found, NoFit):
        found = explained(intent, there, found, _solve)
        found = beyond_quota(intent, there, found, _solve)
    if len(there) == len(pools) or (isinstance(found, Plan) and _starts(intent, found)):
        return found
    awaited = _solve(intent, expected)
    if isinstance(awaited, Plan):
        return awaited
    return found if isinstance(found, Plan) else no_fit(intent, pools)


def _starts(intent: Intent, plan: Plan) -> bool:
    """Whether GPUs are free for a replica now, or nodes of the same kind will come for it."""
    first = plan.variants[0].sizing
    return first.pool.grows or places(intent, first) > 0


def _solve(intent: Intent, pools: tuple[Pool, ...], awaited: tuple[Pool, ...] = ()) -> Plan | NoFit:
    usable = usable_pools(intent, pools)
    for point in (False, True):
        for model in intent.models:
            found = fitting(intent, usable, model, point=point)
            if found:
                variants = _on_one_or_more(intent, usable, found, awaited, point=point)
                first = variants[0].sizing
                return Plan(
                    variants=variants,
                    alternatives=(),
                    frontier=(),
                    why=_why(intent, first, found) + _links(variants[0]),
                )
    return no_fit(intent, pools)


def _on_one_or_more(
    intent: Intent,
    pools: tuple[Pool, ...],
    found: list[Sizing],
    awaited: tuple[Pool, ...],
    *,
    point: bool,
) -> tuple[VariantPlan, ...]:
    """All replicas on the pool that comes first; where none holds all of them now, on several."""
    best = min(found, key=lambda sizing: rank(intent, sizing))
    if places(intent, best) >= intent.replicas or not intent.may_spread:
        return (VariantPlan(sizing=best, replicas=intent.replicas),)
    tried = [
        (spread(intent, pools, sizing, point=point), sizing)
        for sizing in found
        if places(intent, sizing) and sizing.max_model_len >= least_length(intent, best)
    ]
    whole = [each for each in tried if _all_placed(intent, pools, each[0])]
    if not whole:
        return spread(intent, pools, best, point=point, awaited=awaited)
    return min(whole, key=lambda each: rank(intent, each[1]))[0]


def _all_placed(intent: Intent, pools: tuple[Pool, ...], variants: tuple[VariantPlan, ...]) -> bool:
    """Whether every replica finds GPUs now."""
    return sum(placed(intent, pools, variants)) >= intent.replicas


def _links(variant: VariantPlan) -> str:
    """What to add where ranks of tensor parallelism do not all find NVLink."""
    sizing, layout = variant.sizing, variant.sizing.settings.layout
    groups = variant.replicas * layout.nodes * layout.gpus_per_node // layout.ranks_per_node
    told = sizing.pool.crossing(layout.ranks_per_node, groups)
    return f"; {told}" if told else ""


def _why(intent: Intent, best: Sizing, fitting: list[Sizing]) -> str:
    count, product = best.gpus_per_replica, best.pool.product
    layout = best.settings.layout
    if layout.nodes > 1:
        product += f" over {layout.nodes} nodes"
        reason = (
            f"no one node holds it; tensor parallel {layout.tensor_parallel_size} and "
            f"{layout.pipeline_parallel_size} pipeline stages"
        )
    elif intent.tensor_parallel_size:
        reason = "as tensorParallelSize asks"
    elif count == 1:
        reason = "one GPU holds it"
    else:
        reason = f"the fewest that hold {format_gib(best.model.facts.checkpoint_bytes)} of weights"
        if intent.max_model_len.preferred or intent.max_num_seqs.preferred:
            reason = "the fewest that come near the preferred values"
    rivals = [sizing for sizing in fitting if sizing.pool.name != best.pool.name]
    if not rivals:
        return f"{count} × {product}: {reason}"
    rival = min(rivals, key=lambda sizing: rank(intent, sizing))
    edge = _edge(rank(intent, best), rank(intent, rival))
    return f"{count} × {product}: {reason}; rather than {rival.pool.product}, {edge}"


def _edge(mine: tuple[object, ...], theirs: tuple[object, ...]) -> str:
    """What decided against the next best pool, in the order of the ranking."""
    if mine[0] != theirs[0]:
        return f"since {'some' if mine[0] else 'enough'} of its GPUs are free"
    if mine[1] != theirs[1]:
        return "since it reaches more of the preferred length and sequences"
    if mine[2] != theirs[2]:
        return "since it reaches as much with a smaller GPU"
    return "since its pool comes first by name"
