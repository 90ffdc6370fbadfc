"""What else would do: better choices and the trade-off, by the plan's own functions."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from shipfitter.core.candidate import Candidate, Sizing
from shipfitter.core.candidates import candidates, gpu_counts, group_candidates
from shipfitter.core.intent import Intent, ModelChoice, Wanted
from shipfitter.core.inventory import Pool
from shipfitter.core.sizing import size

MOST_ALTERNATIVES = 3
MOST_FRONTIER_POINTS = 8


@dataclass(frozen=True, slots=True)
class Alternative:
    """A nearest better or nearest fitting choice, computed by the same solve."""

    summary: str
    would_allow: str


@dataclass(frozen=True, slots=True)
class FrontierPoint:
    """One point of the trade-off on the chosen pool."""

    max_model_len: int
    max_num_seqs: int


def allows(sizing: Sizing) -> str:
    """The two numbers of a sizing, for a person."""
    return f"max_model_len {sizing.max_model_len}, max_num_seqs {sizing.max_num_seqs}"


def named(sizing: Sizing) -> str:
    """Model and GPUs of a sizing, for a person."""
    nodes = sizing.settings.layout.nodes
    over = f" over {nodes} nodes" if nodes > 1 else ""
    return f"{short(sizing.model)} on {sizing.gpus_per_replica} × {sizing.pool.product}{over}"


def short(model: ModelChoice) -> str:
    """The model's name without its organisation."""
    return model.facts.name.rsplit("/", 1)[-1]


def better_choices(
    intent: Intent, pools: tuple[Pool, ...], best: Sizing
) -> tuple[Alternative, ...]:
    """At most three: an fp8 cache, the next model in the list, the next GPU count, another pool."""
    found: list[Alternative] = []
    for summary, sizing in _neighbours(intent, pools, best):
        if sizing is not None and _is_better(sizing, best):
            found.append(Alternative(summary, allows(sizing)))
        if len(found) == MOST_ALTERNATIVES:
            break
    return tuple(found)


def _is_better(sizing: Sizing, best: Sizing) -> bool:
    mine = (sizing.max_model_len, sizing.max_num_seqs)
    theirs = (best.max_model_len, best.max_num_seqs)
    return mine != theirs and all(a >= b for a, b in zip(mine, theirs, strict=True))


def _neighbours(
    intent: Intent, pools: tuple[Pool, ...], best: Sizing
) -> Iterator[tuple[str, Sizing | None]]:
    count = best.gpus_per_replica
    alike = candidates if best.settings.layout.nodes == 1 else group_candidates
    if best.settings.kv_cache_dtype == "auto":
        with_fp8 = replace(intent, kv_cache_dtype="fp8")
        yield (
            "kvCacheDtype: fp8, same GPUs",
            _first(alike(with_fp8, best.pool, best.model, count), with_fp8),
        )
    later = intent.models[intent.models.index(best.model) + 1 :]
    for model in later[:1]:
        yield (
            f"{short(model)}, same GPUs",
            _first(alike(intent, best.pool, model, count), intent),
        )
    free = replace(intent, tensor_parallel_size=None, max_gpus_per_replica=16)
    for more in (n for n in gpu_counts(free, (best.pool,)) if n > count):
        yield (
            f"{more} × {best.pool.product}",
            _first(candidates(free, best.pool, best.model, more), free),
        )
        break
    for pool in sorted(pools, key=lambda p: (p.total_bytes, p.name)):
        if pool.total_bytes > best.pool.total_bytes:
            yield (
                f"{count} × {pool.product}",
                _first(candidates(intent, pool, best.model, count), intent),
            )


def _first(options: Iterator[Candidate], intent: Intent) -> Sizing | None:
    return next((s for c in options if (s := size(c, intent)) is not None), None)


def frontier(intent: Intent, best: Sizing) -> tuple[FrontierPoint, ...]:
    """Sequences of full length that run at once, for at most eight lengths of the chosen pool."""
    tokens = best.kv_cache_tokens
    points: list[FrontierPoint] = []
    length = best.native_len
    candidate = Candidate(
        pool=best.pool,
        model=best.model,
        settings=replace(
            intent.engine, layout=best.settings.layout, kv_cache_dtype=best.settings.kv_cache_dtype
        ),
    )
    while length >= 1024 and len(points) < MOST_FRONTIER_POINTS:
        if length <= tokens * 2:  # beyond that no single request can fit; spare the search
            wish = replace(
                intent,
                max_model_len=Wanted(length, length),
                max_num_seqs=Wanted(1, None),
                typical_tokens=length,
            )
            sizing = size(candidate, wish)
            if sizing is not None:
                points.append(FrontierPoint(length, sizing.running_at_typical))
        length //= 2
    return tuple(points)
