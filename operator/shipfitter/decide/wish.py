"""The parsed resource and its pins as the solve's input."""

from dataclasses import replace
from typing import Any

from shipfitter.api.engine_args import pinned_flags
from shipfitter.api.model_deployment import ModelDeployment, WantedSequences, WantedTokens
from shipfitter.core.engines import EngineSettings, EngineVersion
from shipfitter.core.intent import Intent, ModelChoice, Wanted
from shipfitter.core.model import ModelFacts
from shipfitter.core.weights import ParallelLayout

# Flags a user may pin, by the name of the setting they fix.
LAYOUT = (
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "data_parallel_size",
    "enable_expert_parallel",
)
PINNABLE = (
    "max_model_len",
    "max_num_seqs",
    "max_num_batched_tokens",
    "gpu_memory_utilization",
    "block_size",
    "enable_prefix_caching",
    "enforce_eager",
    "max_cudagraph_capture_size",
    "cudagraph_capture_sizes",
    "async_scheduling",
    "kv_cache_memory_bytes",
    "num_gpu_blocks_override",
    "decode_context_parallel_size",
    "disable_hybrid_kv_cache_manager",
)


def _wanted(bounds: WantedTokens | WantedSequences | None) -> Wanted:
    return Wanted() if bounds is None else Wanted(bounds.min, bounds.preferred)


def intent_of(
    resource: ModelDeployment, version: EngineVersion, models: tuple[tuple[str, ModelFacts], ...]
) -> Intent:
    """What the user wants; flags among engine.args are pins the rest is solved around."""
    spec, workload, gpus = resource.spec, resource.spec.workload, resource.spec.gpus
    pins: dict[str, Any] = dict(pinned_flags(spec.engine.args))
    layout = ParallelLayout(**{name: pins[name] for name in LAYOUT if name in pins})
    engine = EngineSettings(version=version, layout=layout)
    engine = replace(engine, **{name: pins[name] for name in PINNABLE if name in pins})
    pinned_tp = pins.get("tensor_parallel_size") or gpus.tensor_parallel_size
    # A layout that is pinned says how many GPUs it takes; where it is silent, one node's eight.
    pinned_gpus = int(pinned_tp or 1) * layout.pipeline_parallel_size * layout.data_parallel_size
    return Intent(
        models=tuple(ModelChoice(uri=uri, facts=facts) for uri, facts in models),
        replicas=spec.replicas,
        max_model_len=_wanted(workload.max_model_len),
        max_num_seqs=_wanted(workload.max_num_seqs),
        typical_tokens=workload.typical_tokens,
        size_for=workload.size_for,
        prefer=workload.prefer,
        products=tuple(gpus.products or ()),
        max_gpus_per_replica=gpus.per_replica.max if gpus.per_replica else max(8, pinned_gpus),
        tensor_parallel_size=int(pinned_tp) if pinned_tp else None,
        kv_cache_dtype=str(pins.get("kv_cache_dtype", gpus.kv_cache_dtype)),
        allow_shared=gpus.allow_shared,
        engine=engine,
    )
