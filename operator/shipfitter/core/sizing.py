"""One candidate solved, and what stopped its numbers from being larger."""

from dataclasses import replace

from shipfitter.core.batched import batched_steps
from shipfitter.core.budget import budget
from shipfitter.core.candidate import Candidate, Sizing, too_heavy
from shipfitter.core.goals import Goals
from shipfitter.core.intent import Intent, Verdict
from shipfitter.core.inventory import Pool
from shipfitter.core.kvcache import cache_layout, plan_cache
from shipfitter.core.solver import Found, Solver, Step


def _search(candidate: Candidate, goals: Goals, intent: Intent, *, point: bool) -> Sizing | None:
    """The batched tokens that serve best: as many as reach the preferred length, fewer where that
    (or a minimum) needs it, and fewer still while a halving frees much cache.
    """
    solver = Solver(candidate, goals, intent, point=point)
    chosen: Found | None = None
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


def _sizing(solver: Solver, found: Found) -> Sizing | None:
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


def _limited_by(solver: Solver, found: Found, final: Step) -> str:
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
    goals = Goals.of(intent, candidate.model, candidate.settings).within(
        candidate.caps.max_model_len
    )
    if goals.preferred_len < goals.min_len:
        return None
    return _search(candidate, goals, intent, point=point)


def holds(sizing: Sizing, pool: Pool) -> Sizing | None:
    """The same flags on a pool as it is now; None when the engine would no longer start there."""
    if sizing.settings.layout.nodes > max(1, len(pool.nodes)):
        return None
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
