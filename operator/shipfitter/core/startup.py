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
from shipfitter.core.versions import EngineVersion
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


# Three starts of gpt-oss before 0.27 failed beside 0.8 to 2 GiB that they should have had; of those
# whose experts are loaded as they are, none did. Assumed, not measured: four-bit experts are laid
# out anew when they are loaded, and torch reserves the holes this leaves without allocating them,
# which is subtracted from the cache since 0.27 only. So it widens the verdict, not the estimate.
_HOLES_BYTES = 2 * GIB
_HOLES_ARE_SUBTRACTED_SINCE = EngineVersion(0, 27, 0)
# Source: vLLM vllm/v1/worker/workspace.py, from 0.13 on: experts work in one buffer that stays.
# Until then each batch allocated its own. That blocks of one size are of no use to the next, so
# that while serving the allocator may hold up to the peak once more, is inferred from one report
# of long prompts (11 GiB beyond what was allocated, where the peak is 5).
_ONE_WORKSPACE_SINCE = EngineVersion(0, 13, 0)


def _holes_bytes(model: ModelFacts, settings: EngineSettings) -> int:
    quantization = model.quantization
    repacked = quantization is not None and quantization.weight_bits <= 4
    if model.moe is None or not repacked or settings.enforce_eager:
        return 0
    return _HOLES_BYTES if settings.version < _HOLES_ARE_SUBTRACTED_SINCE else 0


def _held_again_bytes(model: ModelFacts, settings: EngineSettings, spent: Spending) -> int:
    if model.moe is None or settings.version >= _ONE_WORKSPACE_SINCE:
        return 0
    return spent.peak.point


def after_the_cache(
    model: ModelFacts, settings: EngineSettings, beside: Estimate, spent: Spending
) -> Iterator[Room]:
    """Capturing graphs, the sampler's warm-up that V1 runs beside them, and full batches later."""
    beside = _possibly_less(beside, _holes_bytes(model, settings))
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
        unused = Estimate(low=rest - more - short, point=rest - more, high=rest)
        yield Room(refusal=Refusal.OUT_OF_MEMORY_SAMPLER, left=together(beside, unused))
    serving = _possibly_less(beside, _held_again_bytes(model, settings, spent))
    yield Room(refusal=Refusal.OUT_OF_MEMORY_SERVING, left=serving)


def _possibly_less(left: Estimate, by_bytes: int) -> Estimate:
    return Estimate(low=left.low - by_bytes, point=left.point, high=left.high)
