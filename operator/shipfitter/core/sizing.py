"""One candidate solved: both numbers under the same bytes, and what stopped them from being larger.

The cache bytes depend on sequences and batched tokens themselves (sampler, capture list, penalty
state, in-flight reserve), so the budget is rebuilt for every pair that is tried.
"""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, replace

from shipfitter.core.budget import Budget, budget, utilization_for
from shipfitter.core.candidate import Candidate, Sizing, too_heavy
from shipfitter.core.engines import EngineSettings, resolve
from shipfitter.core.goals import Goals
from shipfitter.core.intent import Intent, Prefer, SizeFor, Verdict
from shipfitter.core.inventory import Pool
from shipfitter.core.kvcache import CacheLayout, cache_layout, longest_fitting_tokens, plan_cache
from shipfitter.core.ladder import last_true, round_length, sequence_ladder
from shipfitter.units import GIB

# A cap is not a reservation: the engine queues. So few are always allowed where memory permits.
ALWAYS_ALLOWED_SEQS = 16
LARGE_TIER_BYTES = 70 * GIB  # from here on the engine's own tier is 8,192 batched tokens
LARGE_TIER_BATCHED_TOKENS = 8192
SMALL_TIER_BATCHED_TOKENS = 2048
LEAST_BATCHED_TOKENS = 1024
WORTHWHILE_CACHE_GAIN = 1.05

# Share of the cache one request may take: (a preferred or native length whole, any other length).
SHARES: Mapping[Prefer, tuple[float, float]] = {
    Prefer.CONTEXT: (1.0, 1.0),
    Prefer.BALANCED: (2 / 3, 1 / 2),
    Prefer.CONCURRENCY: (1 / 4, 1 / 8),
}


@dataclass(frozen=True, slots=True)
class _Step:
    """The memory of one (sequences, batched tokens) pair."""

    settings: EngineSettings
    budget: Budget
    layout: CacheLayout
    blocks: int

    @property
    def usable_blocks(self) -> int:
        return self.blocks - 1

    def running(self, tokens: int) -> int:
        """Requests of this length that run at once: all hold, the newest also has to enter."""
        spare = self.usable_blocks - self.layout.pages(tokens)
        return 0 if spare < 0 else 1 + spare // self.layout.hold_pages(tokens)


class Solver:
    """Sizes one candidate against one end of the memory interval."""

    def __init__(self, candidate: Candidate, goals: Goals, intent: Intent, *, point: bool) -> None:
        self.candidate = candidate
        self.goals = goals
        self.intent = intent
        self.point = point
        self.facts = candidate.model.facts
        self.gpu = candidate.gpu

    def step(self, seqs: int, batched: int, length: int) -> _Step | None:
        """The memory under these numbers; None when nothing is left for a cache."""
        open_settings = replace(
            self.candidate.settings,
            max_num_seqs=seqs,
            max_num_batched_tokens=batched,
            max_model_len=length,
        )
        settings = resolve(open_settings, self.facts, self.gpu)
        if self.candidate.settings.gpu_memory_utilization is None:
            settings = replace(
                settings, gpu_memory_utilization=utilization_for(self.facts, settings, self.gpu)
            )
        stages = budget(self.facts, settings, self.gpu)
        layout = cache_layout(self.facts, settings, self.gpu)
        available = [
            stage.kv_cache_bytes.point if self.point else stage.kv_cache_bytes.low
            for stage in stages
        ]
        per_stage = [
            bytes_ // size for bytes_, size in zip(available, layout.bytes_per_block, strict=True)
        ]
        blocks = min(per_stage)
        if blocks <= 1:
            return None
        return _Step(settings, stages[per_stage.index(blocks)], layout, blocks)

    def admits(self, step: _Step | None, seqs: int) -> bool:
        """Whether this many sequences and the least length live in the memory they leave."""
        if step is None or step.layout.pages(self.goals.min_len) > step.usable_blocks:
            return False
        if step.layout.has_state and seqs > step.blocks:
            return False
        if self.intent.size_for is SizeFor.WORST_CASE:
            return seqs <= step.running(self.goals.min_len)
        always = min(self.goals.preferred_seqs, ALWAYS_ALLOWED_SEQS)
        return seqs <= max(step.running(self.goals.typical), always)

    def at(self, batched: int) -> "_Found | None":
        """The most sequences that fit under these batched tokens, then the length."""
        spec = 1 + self.candidate.settings.num_speculative_tokens
        most = min(self.goals.preferred_seqs, batched // spec)
        if self.candidate.settings.max_num_seqs:
            ladder: tuple[int, ...] = (self.candidate.settings.max_num_seqs,)
        else:
            ladder = sequence_ladder(max(1, most))
        best, chosen = self.most_sequences(ladder, batched)
        if chosen is None:
            return None
        if self.intent.size_for is SizeFor.WORST_CASE:
            seqs, length = self.worst_case(chosen, best)
        else:
            seqs, length = best, self.length(chosen)
        return _Found(chosen, seqs, length)

    def most_sequences(self, ladder: tuple[int, ...], batched: int) -> tuple[int, _Step | None]:
        """The largest value of the ladder that fits, with its memory.

        Fewer sequences leave more cache, so what runs under the largest value surely fits: the
        search climbs from there.
        """
        steps: dict[int, _Step | None] = {}

        def fits(seqs: int) -> bool:
            if seqs not in steps:
                steps[seqs] = self.step(seqs, batched, self.goals.preferred_len)
            return self.admits(steps[seqs], seqs)

        if fits(ladder[-1]):
            return ladder[-1], steps[ladder[-1]]
        largest = steps[ladder[-1]]
        sure = largest.running(self.goals.typical) if largest else 0
        start = bisect_right(ladder, sure) - 1
        if start >= 0 and fits(ladder[start]):
            while start + 1 < len(ladder) and fits(ladder[start + 1]):
                start += 1
            return ladder[start], steps[ladder[start]]
        best = last_true(ladder, fits)
        return (best, steps[best]) if best is not None else (0, None)

    def length(self, step: _Step) -> int:
        """The length one request may have of this cache, by preference."""
        whole, other = SHARES[self.intent.prefer]
        usable = step.usable_blocks
        if step.layout.pages(self.goals.preferred_len) <= usable * whole:
            return self.goals.preferred_len
        longest = longest_fitting_tokens(step.layout, int(usable * other), self.goals.preferred_len)
        return max(round_length(longest), self.goals.min_len)

    def worst_case(self, step: _Step, seqs: int) -> tuple[int, int]:
        """Every sequence may be full length: which of the two gives way follows the preference."""
        goals = self.goals

        def longest_for(count: int) -> int:
            low, high = goals.min_len, goals.preferred_len
            while low < high:
                middle = (low + high + 1) // 2
                low, high = (middle, high) if step.running(middle) >= count else (low, middle - 1)
            return low if low == goals.preferred_len else max(round_length(low), goals.min_len)

        if self.intent.prefer is Prefer.CONCURRENCY:
            return seqs, longest_for(seqs)
        if self.intent.prefer is Prefer.CONTEXT:
            length = longest_for(goals.min_seqs)
        else:
            length = self._same_fraction(step, seqs)
        room = min(seqs, step.running(length))
        ladder = sequence_ladder(max(1, seqs))
        return ladder[max(0, bisect_right(ladder, room) - 1)], length

    def _same_fraction(self, step: _Step, seqs: int) -> int:
        goals = self.goals
        low, high = 0.0, 1.0
        for _ in range(24):
            middle = (low + high) / 2
            length = max(goals.min_len, int(goals.preferred_len * middle))
            count = max(goals.min_seqs, int(min(seqs, goals.preferred_seqs) * middle))
            low, high = (middle, high) if step.running(length) >= count else (low, middle)
        length = int(goals.preferred_len * low)
        if length >= goals.preferred_len - 1:
            return goals.preferred_len
        return max(goals.min_len, round_length(length))


@dataclass(frozen=True, slots=True)
class _Found:
    """The numbers under one value of batched tokens."""

    step: _Step
    seqs: int
    length: int

    def meets(self, goals: Goals) -> bool:
        return self.seqs >= goals.min_seqs and self.length >= goals.min_len

    def frees_much(self, other: "_Found") -> bool:
        """Whether this has so much more cache than the other, and no shorter a request."""
        mine, theirs = self.step.budget.kv_cache_bytes.low, other.step.budget.kv_cache_bytes.low
        return self.length >= other.length and mine > theirs * WORTHWHILE_CACHE_GAIN


def batched_steps(candidate: Candidate) -> tuple[int, ...]:
    """Batched tokens worth trying: the engine's tier, halved down to the least that is legal."""
    pinned = candidate.settings.max_num_batched_tokens
    least = _least_batched(candidate)
    if pinned:
        return (pinned,)
    large = (candidate.pool.nominal_bytes or candidate.pool.total_bytes) >= LARGE_TIER_BYTES
    first = LARGE_TIER_BATCHED_TOKENS if large else SMALL_TIER_BATCHED_TOKENS
    steps = []
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


def _search(candidate: Candidate, goals: Goals, intent: Intent, *, point: bool) -> Sizing | None:
    """The batched tokens that serve best: as many as reach the preferred length, fewer where that
    (or a minimum) needs it, and fewer still while a halving frees much cache.
    """
    solver = Solver(candidate, goals, intent, point=point)
    chosen: _Found | None = None
    for batched in batched_steps(candidate):
        found = solver.at(batched)
        if found is None or not found.meets(goals):
            continue
        lifts = chosen is None or found.length >= goals.preferred_len > chosen.length
        if chosen is None or lifts or found.frees_much(chosen):
            chosen = found
        elif chosen.length >= goals.preferred_len:
            break
    return None if chosen is None else _sizing(solver, chosen)


def _sizing(solver: Solver, found: _Found) -> Sizing | None:
    """The found numbers put through the engine's own start-up arithmetic once more."""
    batched = found.step.settings.max_num_batched_tokens
    assert batched is not None
    final = solver.step(found.seqs, batched, found.length)
    if final is None:
        return None
    stages = budget(solver.facts, final.settings, solver.gpu)
    low = plan_cache(final.layout, final.settings, tuple(s.kv_cache_bytes.low for s in stages))
    planned = plan_cache(
        final.layout, final.settings, tuple(s.kv_cache_bytes.point for s in stages)
    )
    if planned.refusal:
        return None
    typical = min(solver.goals.typical, found.length)
    return Sizing(
        pool=solver.candidate.pool,
        model=solver.candidate.model,
        settings=final.settings,
        budget=final.budget,
        verdict=Verdict.BORDERLINE if low.refusal or solver.point else Verdict.FITS,
        kv_cache_tokens=planned.kv_cache_tokens,
        num_gpu_blocks=planned.num_gpu_blocks,
        max_concurrency=planned.max_concurrency,
        running_at_typical=min(found.seqs, final.running(typical)),
        limited_by=_limited_by(solver, found, final),
        one_request_share=final.layout.pages(found.length) / final.usable_blocks,
        native_len=solver.goals.native_len,
        preferred_reached=(found.length >= solver.goals.preferred_len)
        + (not solver.goals.seqs_stated or found.seqs >= solver.goals.preferred_seqs),
    )


def _limited_by(solver: Solver, found: _Found, final: _Step) -> str:
    goals = solver.goals
    if found.seqs >= goals.preferred_seqs and found.length >= goals.preferred_len:
        return "the preferred values"
    if found.seqs >= goals.preferred_seqs:
        return "KV cache (length)"
    if final.layout.has_state and found.seqs >= final.blocks - 16:
        return "state blocks"
    return "KV cache"


def size(candidate: Candidate, intent: Intent, *, point: bool = False) -> Sizing | None:
    """The candidate's numbers, or None where a minimum is missed.

    Sized against the pessimistic end of the interval; with `point`, against the point estimate,
    which makes the verdict Borderline.
    """
    if too_heavy(candidate):
        return None
    goals = Goals.of(intent, candidate.model, candidate.settings)
    return _search(candidate, goals, intent, point=point)


def holds(sizing: Sizing, pool: Pool) -> Sizing | None:
    """The same flags on a pool as it is now; None when the engine would no longer start there."""
    moved = Candidate(pool=pool, model=sizing.model, settings=sizing.settings)
    stages = budget(moved.model.facts, sizing.settings, moved.gpu)
    layout = cache_layout(moved.model.facts, sizing.settings, moved.gpu)
    planned = plan_cache(layout, sizing.settings, tuple(s.kv_cache_bytes.point for s in stages))
    if planned.refusal:
        return None
    return replace(
        sizing,
        pool=pool,
        budget=min(stages, key=lambda stage: stage.kv_cache_bytes.low),
        num_gpu_blocks=planned.num_gpu_blocks,
        kv_cache_tokens=planned.kv_cache_tokens,
        max_concurrency=planned.max_concurrency,
    )
