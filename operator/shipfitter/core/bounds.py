"""What an engine's refusals taught about one pool: limits that later plans there keep."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Limit(StrEnum):
    """What a bound limits; the names are the engine's own where it has one."""

    MAX_MODEL_LEN = "max_model_len"
    MAX_NUM_SEQS = "max_num_seqs"
    MAX_NUM_BATCHED_TOKENS = "max_num_batched_tokens"
    GPU_MEMORY_UTILIZATION = "gpu_memory_utilization"
    MAX_CUDAGRAPH_CAPTURE_SIZE = "max_cudagraph_capture_size"
    MISSING_BYTES = "missing_bytes"  # memory that was counted on and is not there, per GPU
    WEIGHTS_BELOW_BYTES = "weights_below_bytes"  # of one GPU: so many did not do


# Of these the larger value is the stricter one; of all others the smaller.
STRICTER_WHEN_LARGER = frozenset({Limit.MISSING_BYTES})


@dataclass(frozen=True, slots=True)
class Bound:
    """One limit on one pool."""

    pool: str
    limit: Limit
    value: float


def merged(bounds: Iterable[Bound]) -> tuple[Bound, ...]:
    """The strictest bound of each kind, in a stable order."""
    strictest: dict[tuple[str, Limit], Bound] = {}
    for bound in bounds:
        key = (bound.pool, bound.limit)
        known = strictest.get(key)
        if known is None or _is_stricter(bound, known):
            strictest[key] = bound
    return tuple(strictest[key] for key in sorted(strictest))


def _is_stricter(one: Bound, other: Bound) -> bool:
    larger = one.value > other.value
    return larger if one.limit in STRICTER_WHEN_LARGER else one.value < other.value


@dataclass(frozen=True, slots=True)
class Caps:
    """The bounds of one pool, by name; None where nothing was learnt."""

    max_model_len: int | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    gpu_memory_utilization: float | None = None
    max_cudagraph_capture_size: int | None = None
    missing_bytes: int = 0
    weights_below_bytes: int | None = None


NO_CAPS = Caps()


def caps_of(bounds: tuple[Bound, ...], pool: str) -> Caps:
    """What holds on a pool."""
    mine = {bound.limit: bound.value for bound in merged(bounds) if bound.pool == pool}
    if not mine:
        return NO_CAPS

    def whole(limit: Limit) -> int | None:
        return int(mine[limit]) if limit in mine else None

    return Caps(
        max_model_len=whole(Limit.MAX_MODEL_LEN),
        max_num_seqs=whole(Limit.MAX_NUM_SEQS),
        max_num_batched_tokens=whole(Limit.MAX_NUM_BATCHED_TOKENS),
        gpu_memory_utilization=mine.get(Limit.GPU_MEMORY_UTILIZATION),
        max_cudagraph_capture_size=whole(Limit.MAX_CUDAGRAPH_CAPTURE_SIZE),
        missing_bytes=whole(Limit.MISSING_BYTES) or 0,
        weights_below_bytes=whole(Limit.WEIGHTS_BELOW_BYTES),
    )
