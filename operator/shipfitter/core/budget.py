"""Where one GPU's bytes go: weights, cache, activations, graphs, overhead, what is left alone."""

from dataclasses import dataclass
from math import ceil

from shipfitter.core.cache_layout import cache_layout
from shipfitter.core.engines import EngineSettings, Gpu, Learnt
from shipfitter.core.estimate import Estimate
from shipfitter.core.graphs import charges_graphs, graph_bytes
from shipfitter.core.model import ModelFacts
from shipfitter.core.overhead import outside_bytes, unprofiled_bytes
from shipfitter.core.sampler import profiled_sequences, vocabulary_entries
from shipfitter.core.spending import spending
from shipfitter.units import GIB

__all__ = ["Budget", "Estimate", "budget", "reserve_bytes", "utilization_for"]

LEAST_RESERVE_BYTES = GIB // 2
RESERVE_TOGETHER_BYTES = GIB // 5
RESERVED_GRAPHS_PERCENT = 30
HIGHEST_UTILIZATION_PERCENT = 95


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Bytes of one GPU (the tightest stage); parts add up: see `Budget.check`.

    total = requested + not_requested
    requested = weights + overhead + activation + cuda_graph + kv_cache.point
    """

    total_bytes: int
    requested_bytes: int
    weights_bytes: int
    overhead_bytes: int  # persistent beyond weights, inside the request
    activation_bytes: int
    cuda_graph_bytes: int  # charged to the request by this version; 0 where it is not charged
    kv_cache_bytes: Estimate  # negative where the rest alone exceeds the request
    not_requested_bytes: int
    uncharged_cuda_graph_bytes: int  # graphs that come out of what was not requested
    outside_bytes: Estimate  # context, communication: in use before the engine's snapshot
    load_peak_bytes: int

    def check(self) -> bool:
        """True when the parts add up and the interval holds its point."""
        cache = self.kv_cache_bytes
        parts = self.weights_bytes + self.overhead_bytes + self.activation_bytes
        return (
            self.total_bytes == self.requested_bytes + self.not_requested_bytes
            and self.requested_bytes == parts + self.cuda_graph_bytes + cache.point
            and cache.low <= cache.point <= cache.high
        )


def reserve_bytes(model: ModelFacts, settings: EngineSettings, gpu: Gpu) -> int:
    """What must stay free outside the request, per GPU; settings must be resolved.

    Graphs beyond the engine's estimate (all of them where it charges none), one fp32 tensor of
    logits for the sampler's warm-up, buffers that come after profiling, and communication that
    grows while serving.
    """
    graphs = graph_bytes(model, settings).point
    beyond = graphs * RESERVED_GRAPHS_PERCENT // 100 if charges_graphs(settings) else graphs
    warm_up = 4 * profiled_sequences(settings) * vocabulary_entries(model)
    groups = cache_layout(model, settings, gpu).num_groups
    together = RESERVE_TOGETHER_BYTES if settings.layout.tensor_parallel_size > 1 else 0
    return (
        max(LEAST_RESERVE_BYTES, beyond)
        + warm_up
        + unprofiled_bytes(model, settings, gpu, groups)
        + together
    )


def utilization_for(model: ModelFacts, settings: EngineSettings, gpu: Gpu) -> float:
    """gpu_memory_utilization to ask for: free less the reserve, over total.

    Floored to 0.01, at most 0.95.
    """
    free_bytes = gpu.total_bytes - outside_bytes(model, settings, gpu).point
    usable_bytes = free_bytes - reserve_bytes(model, settings, gpu)
    percent = 100 * usable_bytes // gpu.total_bytes
    return max(0, min(HIGHEST_UTILIZATION_PERCENT, percent)) / 100


def budget(model: ModelFacts, settings: EngineSettings, gpu: Gpu) -> tuple[Budget, ...]:
    """The budget of each pipeline stage for resolved settings."""
    stages = settings.layout.pipeline_parallel_size
    return tuple(_stage_budget(model, settings, gpu, stage) for stage in range(stages))


def _stage_budget(model: ModelFacts, settings: EngineSettings, gpu: Gpu, stage: int) -> Budget:
    spent = spending(model, settings, gpu, stage=stage)
    requested_bytes = _requested(settings, gpu, spent.used.point)
    return Budget(
        total_bytes=gpu.total_bytes,
        requested_bytes=requested_bytes,
        weights_bytes=spent.weights_bytes,
        overhead_bytes=spent.overhead_bytes,
        activation_bytes=spent.activation_bytes,
        cuda_graph_bytes=spent.cuda_graph_bytes,
        kv_cache_bytes=_cache(settings, requested_bytes, spent.used),
        not_requested_bytes=gpu.total_bytes - requested_bytes,
        uncharged_cuda_graph_bytes=spent.uncharged_cuda_graph_bytes,
        outside_bytes=outside_bytes(model, settings, gpu),
        load_peak_bytes=spent.load_peak_bytes,
    )


def _requested(settings: EngineSettings, gpu: Gpu, used_bytes: int) -> int:
    """Utilization of the total, or all that is used where the cache's bytes are given."""
    if settings.kv_cache_memory_bytes is not None:
        return used_bytes + settings.kv_cache_memory_bytes
    utilization = settings.gpu_memory_utilization
    if utilization is None:
        utilization = settings.rules.default_utilization
    return ceil(gpu.total_bytes * utilization)


def _cache(settings: EngineSettings, requested_bytes: int, used: Estimate) -> Estimate:
    if settings.kv_cache_memory_bytes is not None:
        return Estimate.exactly(settings.kv_cache_memory_bytes)
    point = requested_bytes - used.point
    below, above = used.high - used.point, used.point - used.low
    if settings.calibrated is not None:
        below, above = (_narrowed(side, settings.calibrated) for side in (below, above))
    return Estimate(low=point - below, point=point, high=point + above)


def _narrowed(margin_bytes: int, learnt: Learnt) -> int:
    """A side of the interval after observations: each one counts as much as all we knew before.

    Assumed: twice the spread holds nineteen of twenty engines.
    """
    share = margin_bytes // (1 + learnt.observations)
    return min(margin_bytes, 2 * learnt.spread_bytes + share)
