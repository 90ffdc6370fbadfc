"""An estimate as JSON: the figures the engine will print, and what they follow from."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shipfitter.cli.estimate_card import Card
from shipfitter.core.budget import Budget
from shipfitter.core.cache_dtype import cache_dtype_for
from shipfitter.core.cache_layout import CacheLayout
from shipfitter.core.engines import EngineVersion
from shipfitter.core.estimate import Estimate
from shipfitter.core.fixes import Fix, JointFix
from shipfitter.core.intent import TYPICAL_TOKENS, Prefer
from shipfitter.core.model import ModelFacts
from shipfitter.core.verdict import Assessment


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimated:
    """A command judged, with all that led to it."""

    assessment: Assessment
    model: ModelFacts
    card: Card
    nodes: int
    engine_version: EngineVersion
    typical_tokens: int | None = None
    given_cache_bytes: int | None = None
    fixes: tuple[Fix, ...] = ()
    joint_fix: JointFix | None = None  # where no single flag makes it fit
    assumptions: tuple[str, ...] = ()
    quantized_as: str | None = None  # while loading, by a flag


def estimate_record(estimated: Estimated) -> dict[str, Any]:
    """Every figure by its name; null where the engine stops before it knows it."""
    found = estimated.assessment
    settings, layout, plan = found.settings, found.layout, found.point
    length = plan.max_model_len if plan else settings.max_model_len
    refused = plan is not None and plan.refusal is not None
    return {
        "verdict": str(found.verdict),
        "reason": None if found.reason is None else str(found.reason),
        "problems": list(found.problems),
        "perGpu": _per_gpu(estimated),
        "numGpuBlocks": plan.num_gpu_blocks if plan else None,
        "blockSize": layout.block_size if layout else settings.block_size,
        "kvCacheTokens": plan.kv_cache_tokens if plan else None,
        "maxConcurrency": round(plan.max_concurrency, 4) if plan else None,
        "kvNeededBytes": plan.needed_bytes if plan else None,
        "estimatedMaxModelLen": plan.estimated_max_model_len if plan and refused else None,
        "maxModelLen": length,
        "maxNumSeqs": settings.max_num_seqs,
        "maxNumBatchedTokens": settings.max_num_batched_tokens,
        "gpuMemoryUtilization": settings.gpu_memory_utilization,
        "tensorParallelSize": settings.layout.tensor_parallel_size,
        "pipelineParallelSize": settings.layout.pipeline_parallel_size,
        "engineVersion": str(estimated.engine_version),
        "modelRunner": settings.model_runner,
        "enablePrefixCaching": settings.enable_prefix_caching,
        "kvCacheDtype": _cache_dtype(estimated),
        "cudagraphCaptureSizes": list(settings.cudagraph_capture_sizes or ()),
        "kvBytesPerToken": kv_bytes_per_token(layout) if layout else None,
        "pagesPerRequest": layout.pages(length) if layout and length else None,
        "holdPagesPerRequest": layout.hold_pages(length) if layout and length else None,
        "runningAtTypical": running_at_typical(estimated),
        "loadPeakBytes": found.tightest.load_peak_bytes if found.stages else None,
        "freeAfterStartBytes": _interval(found.free_after_start),
        "stages": [_stage(found, index) for index in range(len(found.stages))],
        "fixes": [
            {"flag": fix.flag, "value": fix.value, "verdict": str(fix.verdict)}
            for fix in estimated.fixes
        ],
        "fixTogether": _joint(estimated.joint_fix),
        "assumptions": list(estimated.assumptions),
        "model": _model(estimated.model),
    }


def running_at_typical(estimated: Estimated) -> int | None:
    """Requests of typical length that run at once without waiting.

    All but the newest hold their pages; the newest must also be admitted.
    """
    found = estimated.assessment
    if found.layout is None or found.point is None or found.point.refusal is not None:
        return None
    length = found.point.max_model_len
    tokens = min(estimated.typical_tokens or TYPICAL_TOKENS[Prefer.BALANCED], length)
    spare = found.point.num_gpu_blocks - 1 - found.layout.pages(tokens)
    if spare < 0:
        return 0
    running = 1 + spare // max(1, found.layout.hold_pages(tokens))
    return min(running, found.settings.max_num_seqs or running)


def kv_bytes_per_token(layout: CacheLayout) -> int:
    """Bytes of cache that one more token of a long request takes on the tightest rank."""
    blocks_per_token = sum(
        count / (law.block_tokens * law.shards)
        for count, law in layout.page_terms
        if law.block_tokens and law.cap_tokens is None
    )
    return round(max(layout.bytes_per_block, default=0) * blocks_per_token)


def _joint(fix: JointFix | None) -> Mapping[str, Any] | None:
    if fix is None:
        return None
    changes = [{"flag": flag, "value": value} for flag, value in fix.changes]
    return {"changes": changes, "verdict": str(fix.verdict)}


def _cache_dtype(estimated: Estimated) -> str:
    """What the cache really holds, where a checkpoint or a backend decides it."""
    settings = estimated.assessment.settings
    if estimated.assessment.layout is None:
        return settings.kv_cache_dtype
    capability = estimated.card.gpu.compute_capability
    return cache_dtype_for(estimated.model, settings.kv_cache_dtype, settings.version, capability)


def _per_gpu(estimated: Estimated) -> Mapping[str, Any]:
    found = estimated.assessment
    if not found.stages:
        return {**dict.fromkeys(_BUDGET_KEYS), "totalBytes": estimated.card.gpu.total_bytes}
    budget = _budget(found.tightest)
    given = estimated.given_cache_bytes
    if given is None:
        return budget
    return {**budget, "kvCacheBytes": _interval(Estimate.exactly(given))}


def _stage(found: Assessment, index: int) -> Mapping[str, Any]:
    layout = found.layout
    block_bytes = layout.bytes_per_block[index] if layout else None
    return {"stage": index, "bytesPerBlock": block_bytes, **_budget(found.stages[index])}


_BUDGET_KEYS = (
    "totalBytes",
    "requestedBytes",
    "weightsBytes",
    "overheadBytes",
    "activationBytes",
    "cudaGraphBytes",
    "kvCacheBytes",
    "notRequestedBytes",
    "outsideBytes",
    "loadPeakBytes",
)


def _budget(budget: Budget) -> Mapping[str, Any]:
    values = (
        budget.total_bytes,
        budget.requested_bytes,
        budget.weights_bytes,
        budget.overhead_bytes,
        budget.activation_bytes,
        budget.cuda_graph_bytes,
        _interval(budget.kv_cache_bytes),
        budget.not_requested_bytes,
        _interval(budget.outside_bytes),
        budget.load_peak_bytes,
    )
    return dict(zip(_BUDGET_KEYS, values, strict=True))


def _interval(estimate: Estimate | None) -> Mapping[str, int] | None:
    if estimate is None:
        return None
    return {"low": estimate.low, "point": estimate.point, "high": estimate.high}


def _model(model: ModelFacts) -> Mapping[str, Any]:
    return {
        "name": model.name,
        "architecture": model.architecture,
        "revision": model.revision or None,
        "quantization": model.quantization.method if model.quantization else None,
        "checkpointBytes": model.checkpoint_bytes,
        "weightsSource": model.weights_source,
    }
