"""Why a candidate misses a minimum, in figures."""

from dataclasses import replace

from shipfitter.core.batched import batched_steps
from shipfitter.core.budget import budget, utilization_for
from shipfitter.core.candidate import (
    MOST_UTILIZATION,
    Candidate,
    Shortfall,
    heaviest_rank_bytes,
    too_heavy,
)
from shipfitter.core.engines import resolve
from shipfitter.core.goals import Goals
from shipfitter.core.intent import Intent
from shipfitter.core.kvcache import cache_layout, longest_fitting_tokens
from shipfitter.core.solver import Solver


def shortfall(candidate: Candidate, intent: Intent) -> Shortfall:
    """Why a candidate misses a minimum: its smallest configuration, in figures."""
    goals = Goals.of(intent, candidate.model, candidate.settings)
    if too_heavy(candidate):
        return Shortfall(
            candidate=candidate,
            kind="weights",
            needed_bytes=heaviest_rank_bytes(candidate),
            usable_bytes=int(candidate.gpu.total_bytes * MOST_UTILIZATION),
        )
    solver = Solver(candidate, goals, intent, point=False)
    batched = batched_steps(candidate)[-1]
    settings = resolve(
        replace(
            candidate.settings,
            max_num_seqs=goals.min_seqs,
            max_num_batched_tokens=batched,
            max_model_len=goals.min_len,
        ),
        solver.facts,
        solver.gpu,
    )
    if candidate.settings.gpu_memory_utilization is None:
        settings = replace(
            settings, gpu_memory_utilization=utilization_for(solver.facts, settings, solver.gpu)
        )
    tightest = min(
        budget(solver.facts, settings, solver.gpu), key=lambda part: part.kv_cache_bytes.low
    )
    layout = cache_layout(solver.facts, settings, solver.gpu)
    step = solver.step(goals.min_seqs, batched, goals.min_len)
    longest = 0
    if step is not None:
        longest = longest_fitting_tokens(step.layout, step.usable_blocks, goals.native_len)
    if step is None:
        kind = "cache"
    elif longest < goals.min_len:
        kind = "length"
    else:
        kind = "sequences"
    fixed = tightest.requested_bytes - tightest.kv_cache_bytes.low
    return Shortfall(
        candidate=candidate,
        kind=kind,
        needed_bytes=fixed + layout.needed_bytes(goals.min_len) + layout.bytes_per_block[0],
        usable_bytes=tightest.requested_bytes,
        longest_tokens=longest,
    )
