"""Where one GPU's bytes go: weights, cache, activations, graphs, overhead, and what is left alone."""

from dataclasses import dataclass

from shipfitter.core.engines import EngineSettings, Gpu
from shipfitter.core.model import ModelFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A quantity we cannot know exactly: low <= point <= high."""

    low: int
    point: int
    high: int


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
    kv_cache_bytes: Estimate
    not_requested_bytes: int
    uncharged_cuda_graph_bytes: int  # graphs that come out of what was not requested
    outside_bytes: Estimate  # context, communication: in use before the engine's snapshot
    load_peak_bytes: int


def reserve_bytes(model: ModelFacts, settings: EngineSettings, gpu: Gpu) -> int:
    """What must stay free outside the request (design: utilization rule), per GPU."""
    raise NotImplementedError


def utilization_for(model: ModelFacts, settings: EngineSettings, gpu: Gpu) -> float:
    """gpu_memory_utilization to ask for: free less the reserve, over total, floored to 0.01, at most 0.95."""
    raise NotImplementedError


def budget(model: ModelFacts, settings: EngineSettings, gpu: Gpu) -> tuple[Budget, ...]:
    """The budget of each pipeline stage for resolved settings."""
    raise NotImplementedError
