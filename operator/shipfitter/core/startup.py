"""What a start asks of the card, step by step, and how much is left at each: the order of events.

Source: vLLM vllm/v1/worker/gpu_worker.py: init_device, load_model, determine_available_memory,
initialize_from_config, compile_or_warm_up_model; measured-out-of-memory reports of 0.8 to 0.28.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from shipfitter.core.budget import Budget
from shipfitter.core.engines import EngineSettings, Gpu
from shipfitter.core.estimate import Estimate, difference, sum_of
from shipfitter.core.model import ModelFacts
from shipfitter.core.overhead import unprofiled_bytes
from shipfitter.core.refusals import Refusal
from shipfitter.core.sampler import profiled_sequences, vocabulary_entries
from shipfitter.core.spending import Spending

# What a start may take while loading beyond the weights: buffers of the loader.
_LOADER_PERCENT = 101


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What one step of a start leaves of the card; below nothing it fails with this refusal."""

    refusal: Refusal
    left: Estimate


def free_bytes(budget: Budget) -> Estimate:
    """The card before the engine takes anything: its total without what is in use already."""
    return difference(Estimate.exactly(budget.total_bytes), budget.outside_bytes)


def before_the_cache(
    settings: EngineSettings, gpu: Gpu, budget: Budget, spent: Spending
) -> Iterator[Room]:
    """The free-memory check, loading, and the profile run."""
    free = free_bytes(budget)
    if not settings.rules.legacy_engine:
        utilization = settings.gpu_memory_utilization or settings.rules.default_utilization
        wanted = Estimate.exactly(ceil(gpu.total_bytes * utilization))
        yield Room(refusal=Refusal.FREE_MEMORY, left=difference(free, wanted))
    loading = Estimate.around(budget.load_peak_bytes, low_percent=100, high_percent=_LOADER_PERCENT)
    yield Room(refusal=Refusal.OUT_OF_MEMORY_LOAD, left=difference(free, loading))
    profiling = sum_of((spent.held, spent.peak))
    yield Room(refusal=Refusal.OUT_OF_MEMORY_PROFILE, left=difference(free, profiling))


def free_after_start(
    model: ModelFacts, settings: EngineSettings, gpu: Gpu, budget: Budget, spent: Spending
) -> Estimate:
    """The card once the cache is allocated and graphs are captured.

    The cache takes what the profile run left of the request, whatever its parts really were. What
    comes back is the peak and the charge for graphs; what goes is the graphs, and buffers that the
    profile run did not see.
    """
    groups = 1
    unseen = unprofiled_bytes(model, settings, gpu, groups)
    requested = Estimate.exactly(budget.requested_bytes + unseen)
    idle = difference(free_bytes(budget), requested)
    return difference(sum_of((idle, spent.peak, spent.charged)), spent.graphs)


def after_the_cache(
    model: ModelFacts, settings: EngineSettings, free: Estimate, spent: Spending
) -> Iterator[Room]:
    """Capturing graphs, then the sampler's warm-up, which V1 runs once more beside them."""
    if not settings.enforce_eager:
        yield Room(refusal=Refusal.OUT_OF_MEMORY_GRAPHS, left=free)
    if settings.model_runner != "V2":
        copy = 4 * profiled_sequences(settings) * vocabulary_entries(model)
        warm_up = Estimate(
            low=spent.sampler.low + copy,
            point=spent.sampler.point + copy,
            high=spent.sampler.high + copy,
        )
        yield Room(refusal=Refusal.OUT_OF_MEMORY_SAMPLER, left=difference(free, warm_up))
