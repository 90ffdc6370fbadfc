"""The one solve: wish, model facts, pools and engine in; a Plan, or NoFit with facts, out."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from shipfitter.core.alternatives import Alternative, FrontierPoint, better_choices, frontier
from shipfitter.core.candidate import Candidate, Sizing
from shipfitter.core.candidates import candidates, gpu_counts, group_candidates, usable_pools
from shipfitter.core.group_obstacles import explained
from shipfitter.core.groups import group_gpu_counts
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
from shipfitter.core.sizing import size
from shipfitter.units import GIB, format_gib

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
]

# Cards of nearly one size are of one size: 79.2 GiB is no smaller GPU than 79.3.
GPU_SIZE_STEP_BYTES = 4 * GIB


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantPlan:
    """A sizing and how many replicas it carries."""

    sizing: Sizing
    replicas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A complete decision."""

    variants: tuple[VariantPlan, ...]
    alternatives: tuple[Alternative, ...]
    frontier: tuple[FrontierPoint, ...]
    why: str  # one sentence: why this GPU and TP


def solve(intent: Intent, pools: tuple[Pool, ...]) -> Plan | NoFit:
    """The plan for a wish on the pools, or what is missing. Depends on nothing but its inputs.

    Order: a plan that surely fits before one that may; the first model in the list; one node
    before several, and those only where they are free; the fewest GPUs per replica that reach half
    of what the user said he prefers (else the fewest that meet the minimums); pools that hold all
    replicas now; preferred values reached; the smallest GPU; the name. Nodes that are only expected
    come in where no GPU is free that would do.
    """
    there = tuple(pool for pool in pools if pool.source is not CapacitySource.EXPECTED)
    found = _solve(intent, there)
    if isinstance(found, NoFit):
        found = explained(intent, there, found, _solve)
    if len(there) == len(pools) or (isinstance(found, Plan) and _starts(found)):
        return found
    expected = tuple(pool for pool in pools if pool.source is CapacitySource.EXPECTED)
    awaited = _solve(intent, expected)
    if isinstance(awaited, Plan):
        return awaited
    return found if isinstance(found, Plan) else no_fit(intent, pools)


def _starts(plan: Plan) -> bool:
    """Whether GPUs are free for a replica now."""
    return plan.variants[0].sizing.replicas_now > 0


def _solve(intent: Intent, pools: tuple[Pool, ...]) -> Plan | NoFit:
    usable = usable_pools(intent, pools)
    for point in (False, True):
        for model in intent.models:
            fitting = _fitting(intent, usable, model, point=point)
            if fitting:
                best = min(fitting, key=lambda sizing: _rank(intent, sizing))
                return Plan(
                    variants=(VariantPlan(sizing=best, replicas=intent.replicas),),
                    alternatives=better_choices(intent, usable, best),
                    frontier=frontier(intent, best),
                    why=_why(intent, best, fitting),
                )
    return no_fit(intent, pools)


def _fitting(
    intent: Intent, pools: tuple[Pool, ...], model: ModelChoice, *, point: bool
) -> list[Sizing]:
    """Sizings with the GPU count that wins; larger counts are not even looked at."""
    on_one = _fewest(intent, pools, model, gpu_counts(intent, pools), candidates, point=point)
    if on_one or not intent.spans_nodes:
        return on_one
    counts = group_gpu_counts(intent, pools)
    # A group that starts in part holds whole nodes for nothing: all of it is free, or none is made.
    return _fewest(intent, pools, model, counts, _free_groups, point=point)


def _free_groups(intent: Intent, pool: Pool, model: ModelChoice, count: int) -> Iterator[Candidate]:
    for candidate in group_candidates(intent, pool, model, count):
        layout = candidate.settings.layout
        if pool.replicas_that_fit(layout.gpus_per_node, nodes=layout.nodes):
            yield candidate


Candidates = Callable[[Intent, Pool, ModelChoice, int], Iterator[Candidate]]


def _fewest(
    intent: Intent,
    pools: tuple[Pool, ...],
    model: ModelChoice,
    counts: tuple[int, ...],
    offered: Candidates,
    *,
    point: bool,
) -> list[Sizing]:
    fewest: list[Sizing] = []
    for count in counts:
        sizings = list(_sized(intent, pools, model, count, offered, point=point))
        halfway = [sizing for sizing in sizings if _reaches_half(intent, sizing)]
        if halfway:
            return halfway
        fewest = fewest or sizings
    return fewest


def _sized(
    intent: Intent,
    pools: tuple[Pool, ...],
    model: ModelChoice,
    count: int,
    offered: Candidates,
    *,
    point: bool,
) -> Iterator[Sizing]:
    for pool in pools:
        for candidate in offered(intent, pool, model, count):
            sizing = size(candidate, intent, point=point)
            if sizing is not None:
                yield sizing


def _reaches_half(intent: Intent, sizing: Sizing) -> bool:
    """Only what the user asked for counts: silence asks for no second GPU."""
    wanted_len, wanted_seqs = intent.max_model_len.preferred, intent.max_num_seqs.preferred
    return (
        wanted_len is None or sizing.max_model_len * 2 >= min(wanted_len, sizing.native_len)
    ) and (wanted_seqs is None or sizing.max_num_seqs * 2 >= wanted_seqs)


def _rank(intent: Intent, sizing: Sizing) -> tuple[object, ...]:
    holds_all = sizing.replicas_now >= intent.replicas
    layout = sizing.settings.layout
    return (
        not holds_all,
        -sizing.preferred_reached,
        round(sizing.pool.total_bytes / GPU_SIZE_STEP_BYTES),
        sizing.settings.kv_cache_dtype != "auto",  # the model's own precision first
        layout.pipeline_parallel_size,
        sizing.pool.name,
    )


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
    rival = min(rivals, key=lambda sizing: _rank(intent, sizing))
    edge = _edge(_rank(intent, best), _rank(intent, rival))
    return f"{count} × {product}: {reason}; rather than {rival.pool.product}, {edge}"


def _edge(mine: tuple[object, ...], theirs: tuple[object, ...]) -> str:
    """What decided against the next best pool, in the order of the ranking."""
    if mine[0] != theirs[0]:
        return "since enough of its GPUs are free"
    if mine[1] != theirs[1]:
        return "since it reaches more of the preferred length and sequences"
    if mine[2] != theirs[2]:
        return "since it reaches as much with a smaller GPU"
    return "since its pool comes first by name"
