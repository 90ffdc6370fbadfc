"""Nothing meets the minimums: how far off the closest is and what would do, both computed."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from shipfitter.core.alternatives import MOST_ALTERNATIVES, Alternative, allows, named, short
from shipfitter.core.candidate import Shortfall, Sizing
from shipfitter.core.candidates import (
    candidates,
    gpu_counts,
    group_candidates,
    legal_layouts,
    usable_pools,
)
from shipfitter.core.gpus import resolve_product
from shipfitter.core.groups import group_gpu_counts
from shipfitter.core.intent import Intent, Wanted
from shipfitter.core.inventory import CapacitySource, Pool, PoolNode
from shipfitter.core.ladder import round_length
from shipfitter.core.legality import layout_problems
from shipfitter.core.shortfall import shortfall
from shipfitter.core.sizing import size
from shipfitter.units import format_gib

# Node types people can usually get, smallest first; used only to name what would do.
COMMON_NODE_TYPES = (
    "NVIDIA-L4",
    "NVIDIA-L40S",
    "NVIDIA-A100-SXM4-80GB",
    "NVIDIA-H100-80GB-HBM3",
    "NVIDIA-H200",
    "NVIDIA-B200",
)

# GPUs per replica up to which more nodes are named as a way out.
MOST_GPUS_IN_GROUPS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class NoFit:
    """Nothing meets the minimums; the closest, and what would do."""

    reason: str  # DoesNotFit | NoGpuCapacity
    problem: str
    closest: Shortfall | None = None
    would_fit: tuple[Alternative, ...] = ()
    excluded: tuple[str, ...] = ()  # why each kind of candidate was left out

    def __str__(self) -> str:
        parts = [self.problem, *self.excluded]
        if self.would_fit:
            options = "; ".join(f"{a.summary} ({a.would_allow})" for a in self.would_fit)
            parts.append(f"what would fit: {options}")
        return ". ".join(parts)


def no_fit(intent: Intent, pools: tuple[Pool, ...]) -> NoFit:
    """The facts of a wish that no pool meets."""
    model = short(intent.models[0])
    usable = usable_pools(intent, pools)
    options = _would_fit(intent, pools)
    if not usable:
        return NoFit(
            reason="NoGpuCapacity", problem=_nothing_usable(intent, pools), would_fit=options
        )
    misses = list(_misses(intent, usable))
    excluded = tuple(dict.fromkeys(_exclusions(intent, usable)))
    if not misses:
        return NoFit(
            reason="DoesNotFit",
            problem=f"{model} starts in no layout the GPUs here allow",
            would_fit=options,
            excluded=excluded[:3],
        )
    closest = min(misses, key=lambda miss: miss.needed_bytes / max(1, miss.usable_bytes))
    return NoFit(
        reason="DoesNotFit",
        problem=f"{short(closest.candidate.model)} does not fit: "
        f"{_miss_sentence(intent, closest, usable)}",
        closest=closest,
        would_fit=options,
        excluded=excluded[:3],
    )


def _nothing_usable(intent: Intent, pools: tuple[Pool, ...]) -> str:
    if not pools:
        return intent.elsewhere or (
            "the cluster offers no GPU: no ready node has one that an agent, a ResourceSlice or a "
            "label describes"
        )
    here = ", ".join(sorted({pool.product for pool in pools}))
    shared = [pool for pool in pools if pool.sharing != "none"]
    if shared and not intent.allow_shared and len(shared) == len(pools):
        return f"all GPUs here are shared ({here}): set spec.gpus.allowShared to use them"
    return f"none of spec.gpus.products ({', '.join(intent.products)}) is here; there is {here}"


def _misses(intent: Intent, pools: tuple[Pool, ...]) -> Iterator[Shortfall]:
    for model in intent.models:
        for pool in pools:
            counts = [c for c in gpu_counts(intent, (pool,)) if c <= pool.gpus_per_node]
            for count in counts[-2:]:
                for candidate in candidates(intent, pool, model, count):
                    yield shortfall(candidate, intent)


def _exclusions(intent: Intent, pools: tuple[Pool, ...]) -> Iterator[str]:
    """Why layouts were refused; only what blocks every GPU count of a pool."""
    for pool in pools:
        counts = gpu_counts(intent, (pool,))
        model = intent.models[0]
        if not counts:
            yield f"{pool.product} has {pool.gpus_per_node} GPUs per node"
        elif counts[0] > pool.gpus_per_node:
            yield f"{counts[0]} GPUs are asked for; {pool.product} has {pool.gpus_per_node} a node"
        elif not any(legal_layouts(intent, pool, model, count) for count in counts):
            wanted = intent.engine.layout
            ranks = counts[-1] // wanted.data_parallel_size // wanted.pipeline_parallel_size
            layout = replace(wanted, tensor_parallel_size=max(1, ranks))
            problems = layout_problems(
                model.facts,
                layout,
                gpus_per_node=pool.gpus_per_node,
                compute_capability=pool.compute_capability,
                engine_version=intent.engine.version.release,
            )
            yield f"on {pool.product}: {problems[0] if problems else 'no legal layout'}"


def _miss_sentence(intent: Intent, miss: Shortfall, pools: tuple[Pool, ...]) -> str:
    facts, pool = miss.candidate.model.facts, miss.candidate.pool
    count = miss.candidate.gpus_per_replica
    largest = max(pools, key=lambda p: p.total_bytes * p.gpus_per_node)
    here = f"the largest node here has {largest.gpus_per_node} × {format_gib(largest.total_bytes)}"
    closest = f"the closest, {count} × {pool.product}"
    if miss.kind == "weights":
        return (
            f"{format_gib(facts.checkpoint_bytes)} of weights put {format_gib(miss.needed_bytes)} "
            f"on each of {count} × {pool.product}, which offers {format_gib(miss.usable_bytes)}; "
            f"{here}"
        )
    if miss.kind == "length" and miss.longest_tokens:
        least = intent.max_model_len.minimum or "the default minimum"
        return (
            f"{closest}, holds one request of {miss.longest_tokens} tokens, "
            f"below maxModelLen.min {least}"
        )
    return (
        f"{closest}, needs {format_gib(miss.needed_bytes)} on each GPU for the least length and "
        f"sequences and offers {format_gib(miss.usable_bytes)}; {here}"
    )


def _would_fit(intent: Intent, pools: tuple[Pool, ...]) -> tuple[Alternative, ...]:
    found: list[Alternative] = []
    for summary, wish, offered in _relaxations(intent, pools):
        sizing = _fewest(wish, usable_pools(wish, offered))
        if sizing is not None:
            text = summary.format(
                named=named(sizing), length=sizing.max_model_len, gpus=sizing.gpus_per_replica
            )
            option = Alternative(text, allows(sizing))
            same = (named(sizing), option.would_allow)
            if not any(same[0] in each.summary and same[1] == each.would_allow for each in found):
                found.append(option)
        if len(found) == MOST_ALTERNATIVES:
            break
    return tuple(found)


def _relaxations(
    intent: Intent, pools: tuple[Pool, ...]
) -> Iterator[tuple[str, Intent, tuple[Pool, ...]]]:
    """Wishes one step away: shorter, fp8 cache, more GPUs, other products, other nodes."""
    least = intent.max_model_len.minimum or 8192
    shorter = round_length(least // 2)
    while shorter >= 512:
        wanted = Wanted(shorter, max(shorter, intent.max_model_len.preferred or shorter))
        yield (
            "maxModelLen.min {length}: {named}",
            replace(intent, max_model_len=replace(wanted, minimum=shorter)),
            pools,
        )
        shorter //= 4
    if intent.kv_cache_dtype == "auto":
        yield "kvCacheDtype fp8: {named}", replace(intent, kv_cache_dtype="fp8"), pools
    if intent.tensor_parallel_size or intent.max_gpus_per_replica < 16:
        free = replace(
            intent, tensor_parallel_size=None, max_gpus_per_replica=16, spans_nodes=False
        )
        yield "more GPUs per replica: {named}", free, pools
    if intent.spans_nodes:
        more = replace(intent, max_gpus_per_replica=MOST_GPUS_IN_GROUPS)
        yield "gpus.perReplica.max {gpus}: {named}", more, pools
        larger = tuple(_with_more_nodes(pool) for pool in pools)
        yield "more nodes of a type that is here, gpus.perReplica.max {gpus}: {named}", more, larger
    if intent.products:
        yield "another product that is here: {named}", replace(intent, products=()), pools
    anywhere = replace(
        intent,
        products=(),
        tensor_parallel_size=None,
        max_gpus_per_replica=8,
        spans_nodes=False,
    )
    for product in COMMON_NODE_TYPES:
        here = max((pool.gpus_per_node for pool in pools if pool.product == product), default=0)
        for count in (n for n in (1, 2, 4, 8) if n > here):
            yield "{named}, a node type that is not here", anywhere, (_imagined(product, count),)


def _with_more_nodes(pool: Pool) -> Pool:
    count = max(len(pool.nodes), MOST_GPUS_IN_GROUPS // pool.gpus_per_node)
    nodes = (PoolNode(name=f"{number}", free_gpus=pool.gpus_per_node) for number in range(count))
    return replace(pool, nodes=tuple(nodes))


def _imagined(product: str, count: int) -> Pool:
    row = resolve_product(product)
    assert row is not None, f"the catalogue lost {product}"
    return Pool(
        name=row.product.lower(),
        product=row.product,
        gpus_per_node=count,
        total_bytes=row.cuda_total_bytes,
        nominal_bytes=row.nvml_total_bytes,
        compute_capability=row.compute_capability,
        nodes=(PoolNode(name="imagined", free_gpus=count),),
        source=CapacitySource.CATALOGUE,
        nvlink=row.nvlink,
    )


def _fewest(intent: Intent, pools: tuple[Pool, ...]) -> Sizing | None:
    for model in intent.models:
        for offered, counts in (
            (candidates, gpu_counts(intent, pools)),
            (group_candidates, group_gpu_counts(intent, pools)),
        ):
            for count in counts:
                for pool in pools:
                    for candidate in offered(intent, pool, model, count):
                        sizing = size(candidate, intent)
                        if sizing is not None:
                            return sizing
    return None
