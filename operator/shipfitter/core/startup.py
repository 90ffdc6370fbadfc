"""What a start asks of the card, step by step, and how much is left at each: the order of events.

Source: vLLM vllm/v1/worker/gpu_worker.py: init_device, load_model, determine_available_memory,
initialize_from_config, compile_or_warm_up_model; measured-out-of-memory reports of 0.8 to 0.28.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from shipfitter.core.budget import Budget
from shipfitter.core.cache_layout import cache_layout
from shipfitter.core.engines import EngineSettings, Gpu
from shipfitter.core.estimate import Estimate, difference, sum_of, together
from shipfitter.core.model import ModelFacts
from shipfitter.core.overhead import unprofiled_bytes
from shipfitter.core.refusals import Refusal
from shipfitter.core.sampler import profiled_sequences, vocabulary_entries
from shipfitter.core.spending import Spending
from shipfitter.units import GIB

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


def beside_the_cache(
    model: ModelFacts, settings: EngineSettings, gpu: Gpu, budget: Budget, spent: Spending
) -> Estimate:
    """The card while a full batch runs: cache, graphs, and everything that was profiled.

    The cache takes what the profile run left of the request, whatever its parts really were; the
    charge for graphs comes back, graphs go, and so do buffers that the profile run did not see.
    """
    unseen = unprofiled_bytes(model, settings, gpu, cache_layout(model, settings, gpu).num_groups)
    requested = Estimate.exactly(budget.requested_bytes + unseen)
    idle = difference(free_bytes(budget), requested)
    return difference(sum_of((idle, spent.charged)), spent.graphs)


# Kernels of experts kept so much more from the first capture on that sampling failed beside them in
# six starts that had room for it otherwise, and did not in eight others: 0.8 to 2 GiB.
_EXPERTS_KEEP_BYTES = 2 * GIB


def after_the_cache(
    model: ModelFacts, settings: EngineSettings, beside: Estimate, spent: Spending
) -> Iterator[Room]:
    """Capturing graphs, the sampler's warm-up that V1 runs beside them, and full batches later."""
    kept = _EXPERTS_KEEP_BYTES if model.moe is not None and not settings.enforce_eager else 0
    beside = Estimate(low=beside.low - kept, point=beside.point, high=beside.high)
    if not settings.enforce_eager:
        yield Room(refusal=Refusal.OUT_OF_MEMORY_GRAPHS, left=together(beside, spent.peak))
    if settings.model_runner != "V2":
        # The same peak as profiled, or, where the profile run had a sampler that takes less, all of
        # the difference. Where it sorts, failures show a float32 copy on top.
        rest = spent.peak.point - spent.sampler.point
        short = 0
        if not settings.rules.legacy_engine:
            short = spent.peak.point - min(spent.peak.point, spent.other_peak.point)
        copy = 4 * profiled_sequences(settings) * vocabulary_entries(model)
        more = copy if settings.rules.sorts_to_sample else 0
        unused = Estimate(low=rest - more - short, point=rest, high=rest)
        yield Room(refusal=Refusal.OUT_OF_MEMORY_SAMPLER, left=together(beside, unused))
    yield Room(refusal=Refusal.OUT_OF_MEMORY_SERVING, left=beside)
