"""How many tokens a step may batch: the values worth trying."""

from shipfitter.core.candidate import Candidate
from shipfitter.core.engines import resolve
from shipfitter.core.kvcache import cache_layout
from shipfitter.units import GIB

LARGE_TIER_BYTES = 70 * GIB  # from here on the engine's own tier is 8,192 batched tokens
LARGE_TIER_BATCHED_TOKENS = 8192
SMALL_TIER_BATCHED_TOKENS = 2048
LEAST_BATCHED_TOKENS = 1024


def batched_steps(candidate: Candidate) -> tuple[int, ...]:
    """Batched tokens worth trying: the engine's tier, halved down to the least that is legal."""
    pinned = candidate.settings.max_num_batched_tokens
    least = _least_batched(candidate)
    if pinned:
        return (pinned,)
    most = candidate.caps.max_num_batched_tokens
    large = (candidate.pool.nominal_bytes or candidate.pool.total_bytes) >= LARGE_TIER_BYTES
    first = LARGE_TIER_BATCHED_TOKENS if large else SMALL_TIER_BATCHED_TOKENS
    steps = []
    while most is not None and first > max(most, least):
        first //= 2
    while first >= max(LEAST_BATCHED_TOKENS, least):
        steps.append(first)
        first //= 2
    return tuple(steps) or (max(LEAST_BATCHED_TOKENS, least),)


def _least_batched(candidate: Candidate) -> int:
    """A hybrid's aligned block must be scheduled whole; otherwise nothing bounds the batch."""
    if not candidate.model.facts.is_hybrid:
        return 0
    settings = resolve(candidate.settings, candidate.model.facts, candidate.gpu)
    return cache_layout(candidate.model.facts, settings, candidate.gpu).block_size
