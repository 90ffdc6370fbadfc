"""Which pools and layouts are worth sizing: those the user allows and the engine would start in."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from shipfitter.core.bounds import Caps, caps_of
from shipfitter.core.calibrate import key_for, with_learning
from shipfitter.core.candidate import Candidate
from shipfitter.core.engines import EngineSettings
from shipfitter.core.estimate import Estimate, sum_of
from shipfitter.core.gpus import normalise_product, resolve_product
from shipfitter.core.groups import group_layouts
from shipfitter.core.intent import Intent, ModelChoice
from shipfitter.core.inventory import Pool
from shipfitter.core.legality import layout_problems
from shipfitter.core.weights import ParallelLayout

# fp8 caches have a backend from Ada on. Source: vLLM platforms/cuda.py, attention back ends.
LEAST_FP8_CACHE_CAPABILITY = (8, 9)


def product_key(spelling: str) -> str:
    """One key for all spellings of a product, known to the catalogue or not."""
    row = resolve_product(spelling)
    return (row.product if row else normalise_product(spelling)).casefold()


def usable_pools(intent: Intent, pools: tuple[Pool, ...]) -> tuple[Pool, ...]:
    """The pools the user allows: products named, shared cards only when asked for."""
    wanted = {product_key(product) for product in intent.products}
    return tuple(
        pool
        for pool in pools
        if (not wanted or product_key(pool.product) in wanted)
        and (intent.allow_shared or pool.sharing == "none")
    )


def gpu_counts(intent: Intent, pools: tuple[Pool, ...]) -> tuple[int, ...]:
    """GPUs per replica worth trying, fewest first."""
    pinned = intent.tensor_parallel_size
    layout = intent.engine.layout
    copies, stages = layout.data_parallel_size, layout.pipeline_parallel_size
    if pinned:
        return (pinned * stages * copies,)
    largest = max((pool.gpus_per_node for pool in pools), default=0)
    largest = min(largest, intent.max_gpus_per_replica)
    counts = (copies * ranks for ranks in (1, 2, 4, 8, 16))
    return tuple(count for count in counts if stages * copies <= count <= largest)


def candidates(intent: Intent, pool: Pool, model: ModelChoice, count: int) -> Iterator[Candidate]:
    """The layouts of this many GPUs of one node in which the engine would start."""
    return _candidates(intent, pool, model, count, legal_layouts)


def group_candidates(
    intent: Intent, pool: Pool, model: ModelChoice, count: int
) -> Iterator[Candidate]:
    """The layouts of this many GPUs over several nodes in which the engine would start."""
    return _candidates(intent, pool, model, count, group_layouts)


Layouts = Callable[[Intent, Pool, ModelChoice, int], tuple[ParallelLayout, ...]]


def _candidates(
    intent: Intent, pool: Pool, model: ModelChoice, count: int, layouts: Layouts
) -> Iterator[Candidate]:
    caps = caps_of(intent.bounds, pool.name)
    for layout in layouts(intent, pool, model, count):
        for dtype in cache_dtypes(intent, pool):
            settings = replace(intent.engine, layout=layout, kv_cache_dtype=dtype)
            settings = _with_experience(intent, settings, pool, model, caps)
            yield Candidate(pool=pool, model=model, settings=settings, caps=caps)


def _with_experience(
    intent: Intent, settings: EngineSettings, pool: Pool, model: ModelChoice, caps: Caps
) -> EngineSettings:
    """The settings with what engines like these, and this deployment's own, taught."""
    if intent.learnt:
        key = key_for(model.facts, settings, pool.product)
        settings = with_learning(settings, intent.learnt.get(key), pool.total_bytes)
    if caps.missing_bytes:
        missing = Estimate.exactly(caps.missing_bytes)
        settings = replace(settings, extra_bytes=sum_of((settings.extra_bytes, missing)))
    return settings


def legal_layouts(
    intent: Intent, pool: Pool, model: ModelChoice, count: int
) -> tuple[ParallelLayout, ...]:
    """Tensor parallel over all GPUs; where heads forbid it, as much as they allow, in stages."""
    if count > pool.gpus_per_node or (count > 1 and (pool.mig_profile or pool.sharing != "none")):
        return ()
    copies = intent.engine.layout.data_parallel_size
    stages_pinned = intent.engine.layout.pipeline_parallel_size
    stage_counts = (
        (stages_pinned,) if stages_pinned > 1 or intent.tensor_parallel_size else (1, 2, 4)
    )
    for stages in stage_counts:
        if count % (stages * copies):
            continue
        layout = replace(
            intent.engine.layout,
            tensor_parallel_size=count // (stages * copies),
            pipeline_parallel_size=stages,
        )
        if not layout_problems(
            model.facts,
            layout,
            gpus_per_node=pool.gpus_per_node,
            compute_capability=pool.compute_capability,
            engine_version=intent.engine.version.release,
        ):
            return (layout,)
    return ()


def cache_dtypes(intent: Intent, pool: Pool) -> tuple[str, ...]:
    """KV cache dtypes the user allows and the card has a backend for."""
    backend = (
        pool.compute_capability is None or pool.compute_capability >= LEAST_FP8_CACHE_CAPABILITY
    )
    if intent.kv_cache_dtype == "Any":
        return ("auto", "fp8") if backend else ("auto",)
    if intent.kv_cache_dtype.startswith("fp8"):
        return (intent.kv_cache_dtype,) if backend else ()
    return (intent.kv_cache_dtype,)
