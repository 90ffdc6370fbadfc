"""Both numbers under the same bytes: the most sequences that fit, then the length.

The cache bytes depend on sequences and batched tokens themselves (sampler, capture list, penalty
state, in-flight reserve), so the budget is rebuilt for every pair that is tried.
"""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, replace

from shipfitter.core.budget import Budget, budget, utilization_for
from shipfitter.core.candidate import Candidate
from shipfitter.core.engines import EngineSettings, resolve
from shipfitter.core.goals import Goals
from shipfitter.core.intent import Intent, Prefer, SizeFor
from shipfitter.core.kvcache import CacheLayout, cache_layout, longest_fitting_tokens
from shipfitter.core.ladder import last_true, round_length, sequence_ladder

# A cap is not a reservation: the engine queues. So few are always allowed where memory permits.
ALWAYS_ALLOWED_SEQS = 16
WORTHWHILE_CACHE_GAIN = 1.05

# Share of the cache one request may take: (a preferred or native length whole, any other length).
SHARES: Mapping[Prefer, tuple[float, float]] = {
    Prefer.CONTEXT: (1.0, 1.0),
    Prefer.BALANCED: (2 / 3, 1 / 2),
    Prefer.CONCURRENCY: (1 / 4, 1 / 8),
}


@dataclass(frozen=True, slots=True)
class Step:
    """The memory of one (sequences, batched tokens) pair."""

    settings: EngineSettings
    budget: Budget
    layout: CacheLayout
    blocks: int

    @property
    def usable_blocks(self) -> int:
        """Blocks that requests may hold: one is always kept empty."""
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

    def step(self, seqs: int, batched: int, length: int) -> Step | None:
        """The memory under these numbers; None when nothing is left for a cache."""
        open_settings = replace(
            self.candidate.settings,
            max_num_seqs=seqs,
            max_num_batched_tokens=batched,
            max_model_len=length,
        )
        settings = self.resolved(open_settings)
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
        return Step(settings, stages[per_stage.index(blocks)], layout, blocks)

    def resolved(self, open_settings: EngineSettings) -> EngineSettings:
        """The engine's defaults and our utilization, within what refusals taught."""
        caps = self.candidate.caps
        settings = resolve(open_settings, self.facts, self.gpu)
        most, largest = caps.max_cudagraph_capture_size, settings.max_cudagraph_capture_size
        if most is not None and largest is not None and largest > most:
            capped = replace(open_settings, max_cudagraph_capture_size=most)
            settings = resolve(capped, self.facts, self.gpu)
        if self.candidate.settings.gpu_memory_utilization is not None:
            return settings
        utilization = utilization_for(self.facts, settings, self.gpu)
        if caps.gpu_memory_utilization is not None:
            utilization = min(utilization, caps.gpu_memory_utilization)
        return replace(settings, gpu_memory_utilization=utilization)

    def admits(self, step: Step | None, seqs: int) -> bool:
        """Whether this many sequences and the least length live in the memory they leave."""
        if step is None or step.layout.pages(self.goals.min_len) > step.usable_blocks:
            return False
        if step.layout.has_state and seqs > step.blocks:
            return False
        if self.intent.size_for is SizeFor.WORST_CASE:
            return seqs <= step.running(self.goals.min_len)
        always = min(self.goals.preferred_seqs, ALWAYS_ALLOWED_SEQS)
        return seqs <= max(step.running(self.goals.typical), always)

    def at(self, batched: int) -> "Found | None":
        """The most sequences that fit under these batched tokens, then the length."""
        spec = 1 + self.candidate.settings.num_speculative_tokens
        most = min(self.goals.preferred_seqs, batched // spec)
        if self.candidate.caps.max_num_seqs is not None:
            most = min(most, self.candidate.caps.max_num_seqs)
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
        return Found(chosen, seqs, length)

    def most_sequences(self, ladder: tuple[int, ...], batched: int) -> tuple[int, Step | None]:
        """The largest value of the ladder that fits, with its memory.

        Fewer sequences leave more cache, so what runs under the largest value surely fits: the
        search climbs from there.
        """
        steps: dict[int, Step | None] = {}

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

    def length(self, step: Step) -> int:
        """The length one request may have of this cache, by preference."""
        whole, other = SHARES[self.intent.prefer]
        usable = step.usable_blocks
        if step.layout.pages(self.goals.preferred_len) <= usable * whole:
            return self.goals.preferred_len
        longest = longest_fitting_tokens(step.layout, int(usable * other), self.goals.preferred_len)
        return max(round_length(longest), self.goals.min_len)

    def worst_case(self, step: Step, seqs: int) -> tuple[int, int]:
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

    def _same_fraction(self, step: Step, seqs: int) -> int:
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
class Found:
    """The numbers under one value of batched tokens."""

    step: Step
    seqs: int
    length: int

    def meets(self, goals: Goals) -> bool:
        """Whether both minimums are reached."""
        return self.seqs >= goals.min_seqs and self.length >= goals.min_len

    def frees_much(self, other: "Found") -> bool:
        """Whether this has so much more cache than the other, and no shorter a request."""
        mine, theirs = self.step.budget.kv_cache_bytes.low, other.step.budget.kv_cache_bytes.low
        return self.length >= other.length and mine > theirs * WORTHWHILE_CACHE_GAIN
