"""The sizings that are worth comparing, and which of them comes first."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from shipfitter.core.candidate import Candidate, Sizing
from shipfitter.core.candidates import candidates, gpu_counts, group_candidates
from shipfitter.core.goals import Goals
from shipfitter.core.groups import group_gpu_counts
from shipfitter.core.intent import Intent, ModelChoice, Wanted
from shipfitter.core.inventory import Pool
from shipfitter.core.quota import lowest
from shipfitter.core.room import Room
from shipfitter.core.sizing import size
from shipfitter.units import GIB

# Cards of nearly one size are of one size: 79.2 GiB is no smaller GPU than 79.3.
GPU_SIZE_STEP_BYTES = 4 * GIB


def fitting(
    intent: Intent, pools: tuple[Pool, ...], model: ModelChoice, *, point: bool
) -> list[Sizing]:
    """Sizings with the GPU count that wins; larger counts are not even looked at."""
    on_one = _fewest(intent, pools, model, gpu_counts(intent, pools), candidates, point=point)
    if on_one or not intent.spans_nodes:
        return on_one
    counts = group_gpu_counts(intent, pools)
    # A group that starts in part holds whole nodes for nothing: all of it is free, or none is made.
    return _fewest(intent, pools, model, counts, _free_groups, point=point)


def _free_groups(intent: Intent, pool: Pool, model: ModelChoice, count: int) -> Iterator[Candidate]:
    for candidate in group_candidates(intent, pool, model, count):
        layout = candidate.settings.layout
        if pool.replicas_that_fit(layout.gpus_per_node, nodes=layout.nodes):
            yield candidate


Candidates = Callable[[Intent, Pool, ModelChoice, int], Iterator[Candidate]]


def _fewest(
    intent: Intent,
    pools: tuple[Pool, ...],
    model: ModelChoice,
    counts: tuple[int, ...],
    offered: Candidates,
    *,
    point: bool,
) -> list[Sizing]:
    fewest: list[Sizing] = []
    for count in counts:
        sizings = list(_sized(intent, pools, model, count, offered, point=point))
        halfway = [sizing for sizing in sizings if _reaches_half(intent, sizing)]
        if halfway:
            return halfway
        fewest = fewest or sizings
    return fewest


def _sized(
    intent: Intent,
    pools: tuple[Pool, ...],
    model: ModelChoice,
    count: int,
    offered: Candidates,
    *,
    point: bool,
) -> Iterator[Sizing]:
    for pool in pools:
        quota = lowest(intent.quotas, pool.resource_name)
        if quota is not None and count > quota.hard:
            continue
        for candidate in offered(intent, pool, model, count):
            sizing = size(candidate, intent, point=point)
            if sizing is not None:
                yield sizing


def _reaches_half(intent: Intent, sizing: Sizing) -> bool:
    """Only what the user asked for counts: silence asks for no second GPU."""
    wanted_len, wanted_seqs = intent.max_model_len.preferred, intent.max_num_seqs.preferred
    return (
        wanted_len is None or sizing.max_model_len * 2 >= min(wanted_len, sizing.native_len)
    ) and (wanted_seqs is None or sizing.max_num_seqs * 2 >= wanted_seqs)


def places(intent: Intent, sizing: Sizing) -> int:
    """Replicas that find GPUs now, as far as pool and quotas go."""
    return Room((sizing.pool,), intent.quotas).more(sizing)


def rank(intent: Intent, sizing: Sizing) -> tuple[object, ...]:
    """What comes first: all replicas now, or at least one; the wish; the smallest GPU; the name."""
    now = places(intent, sizing)
    layout = sizing.settings.layout
    return (
        0 if now >= intent.replicas else 1 if now else 2,
        -sizing.preferred_reached,
        round(sizing.pool.total_bytes / GPU_SIZE_STEP_BYTES),
        sizing.settings.kv_cache_dtype != "auto",  # the model's own precision first
        layout.pipeline_parallel_size,
        sizing.pool.name,
    )


def best_on(intent: Intent, pool: Pool, model: ModelChoice, *, point: bool) -> Sizing | None:
    """The sizing that one pool would get for itself."""
    found = fitting(intent, (pool,), model, point=point)
    return min(found, key=lambda sizing: rank(intent, sizing), default=None)


def at_length(intent: Intent, sizing: Sizing, length: int, *, point: bool) -> Sizing | None:
    """The same GPUs for requests of just this length, which is no longer than they would hold."""
    if sizing.max_model_len == length:
        return sizing
    shorter = anew(intent, sizing, length, point=point)
    limit = "the length that all replicas share"
    return replace(shorter, limited_by=limit) if shorter else None


def anew(intent: Intent, sizing: Sizing, length: int, *, point: bool) -> Sizing | None:
    """The same GPUs sized again, for requests of just this length; None where it does not fit."""
    wish = replace(intent, max_model_len=Wanted(length, length))
    offered = group_candidates if sizing.settings.layout.nodes > 1 else candidates
    found = [
        fit
        for candidate in offered(wish, sizing.pool, sizing.model, sizing.gpus_per_replica)
        if candidate.settings.kv_cache_dtype == sizing.settings.kv_cache_dtype
        if (fit := size(candidate, wish, point=point)) and fit.max_model_len == length
    ]
    if not found:
        return None
    goals = Goals.of(intent, sizing.model, intent.engine)
    reached = (length >= goals.preferred_len) + (
        not goals.seqs_stated or found[0].max_num_seqs >= goals.preferred_seqs
    )
    return replace(found[0], preferred_reached=reached)
