"""One bounded step for one refusal: the engine's own figure where it named one, else by cause."""

from collections.abc import Callable
from math import floor

from shipfitter.core.bounds import Bound, Limit
from shipfitter.core.candidate import Sizing
from shipfitter.core.engine_log import EngineRefusal
from shipfitter.core.refusals import Refusal
from shipfitter.units import GIB

# Steps where the engine named no figure. Each is small enough to lose little and large enough that
# four of them reach any misprediction seen in public logs.
UNNAMED_SHORTFALL = 0.15  # of the planned cache
LEAST_BATCHED_TOKENS = 1024
UTILIZATION_STEP = 0.03
FREE_MEMORY_MARGIN_BYTES = GIB // 5  # free memory moves a little between two starts


def step_down(refusal: EngineRefusal, sizing: Sizing, so_far: float = 0.0) -> tuple[Bound, ...]:
    """The bounds that answer a refusal of this sizing; none where memory is not the cause.

    `so_far`: missing bytes that earlier steps of this deployment already took off.
    """
    step = _STEPS.get(refusal.kind)
    if step is None:
        return ()
    return tuple(
        Bound(sizing.pool.name, limit, value) for limit, value in step(refusal, sizing, so_far)
    )


Step = tuple[tuple[Limit, float], ...]


def _cache_too_small(refusal: EngineRefusal, sizing: Sizing, so_far: float) -> Step:
    planned = sizing.budget.kv_cache_bytes.point
    if refusal.kv_available_gib is not None:
        missing = planned - refusal.kv_available_gib * GIB
        return ((Limit.MISSING_BYTES, so_far + max(missing, GIB // 64)),)
    if refusal.estimated_max_model_len:
        return ((Limit.MAX_MODEL_LEN, refusal.estimated_max_model_len),)
    return ((Limit.MISSING_BYTES, so_far + planned * UNNAMED_SHORTFALL),)


def _no_blocks(refusal: EngineRefusal, sizing: Sizing, so_far: float) -> Step:
    planned = sizing.budget.kv_cache_bytes.point
    missing = planned - (refusal.kv_available_gib or 0.0) * GIB
    return ((Limit.MISSING_BYTES, so_far + missing),)


def _states_too_few(refusal: EngineRefusal, sizing: Sizing, _: float) -> Step:
    most = refusal.state_blocks or sizing.max_num_seqs // 2
    return ((Limit.MAX_NUM_SEQS, max(1, most)),)


def _free_memory(refusal: EngineRefusal, sizing: Sizing, _: float) -> Step:
    asked = sizing.settings.gpu_memory_utilization or 0.0
    if refusal.free_gib and refusal.total_gib:
        free = refusal.free_gib * GIB - FREE_MEMORY_MARGIN_BYTES
        share = floor(free / (refusal.total_gib * GIB) * 100) / 100
        return ((Limit.GPU_MEMORY_UTILIZATION, min(share, asked - 0.01)),)
    return ((Limit.GPU_MEMORY_UTILIZATION, round(asked - UTILIZATION_STEP, 2)),)


def _load(_: EngineRefusal, sizing: Sizing, __: float) -> Step:
    return ((Limit.MORE_GPUS_THAN, sizing.gpus_per_replica),)


def _profile(refusal: EngineRefusal, sizing: Sizing, so_far: float) -> Step:
    batched = sizing.settings.max_num_batched_tokens or LEAST_BATCHED_TOKENS
    if batched // 2 >= LEAST_BATCHED_TOKENS:
        return ((Limit.MAX_NUM_BATCHED_TOKENS, batched // 2),)
    return _sampler(refusal, sizing, so_far)


def _sampler(_: EngineRefusal, sizing: Sizing, __: float) -> Step:
    return ((Limit.MAX_NUM_SEQS, max(1, sizing.max_num_seqs // 2)),)


def _graphs(_: EngineRefusal, sizing: Sizing, __: float) -> Step:
    asked = sizing.settings.gpu_memory_utilization or 0.0
    largest = sizing.settings.max_cudagraph_capture_size or 0
    lower = (Limit.GPU_MEMORY_UTILIZATION, round(asked - UTILIZATION_STEP, 2))
    if largest > 8:
        return ((Limit.MAX_CUDAGRAPH_CAPTURE_SIZE, max(8, largest // 2)), lower)
    return (lower,)


def _serving(_: EngineRefusal, sizing: Sizing, __: float) -> Step:
    asked = sizing.settings.gpu_memory_utilization or 0.0
    return ((Limit.GPU_MEMORY_UTILIZATION, round(asked - UTILIZATION_STEP, 2)),)


_STEPS: dict[Refusal, Callable[[EngineRefusal, Sizing, float], Step]] = {
    Refusal.KV_CACHE_TOO_SMALL: _cache_too_small,
    Refusal.NO_CACHE_BLOCKS: _no_blocks,
    Refusal.STATE_BLOCKS_TOO_FEW: _states_too_few,
    Refusal.FREE_MEMORY: _free_memory,
    Refusal.OUT_OF_MEMORY_LOAD: _load,
    Refusal.OUT_OF_MEMORY_PROFILE: _profile,
    Refusal.OUT_OF_MEMORY_SAMPLER: _sampler,
    Refusal.OUT_OF_MEMORY_GRAPHS: _graphs,
    Refusal.OUT_OF_MEMORY_SERVING: _serving,
}
