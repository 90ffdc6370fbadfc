"""One bounded step for one refusal: the engine's own figure where it named one, else by cause."""

from collections.abc import Callable
from math import floor

from shipfitter.core.bounds import Bound, Limit
from shipfitter.core.candidate import Candidate, Sizing, heaviest_rank_bytes
from shipfitter.core.engine_log import EngineRefusal
from shipfitter.core.refusals import Refusal
from shipfitter.units import GIB

# Steps where the engine named no figure: small at first, for little is lost, and doubled twice, so
# that three of them reach a misprediction of a fifth of the card.
UNNAMED_SHORTFALL = 0.15  # of the planned cache
UTILIZATION_STEP = 0.03
MOST_STRIDE = 4.0  # of both
GUESSES_AT_CACHE = 3
LEAST_UTILIZATION = 0.05
LEAST_BATCHED_TOKENS = 1024
FREE_MEMORY_MARGIN_BYTES = GIB // 5  # free memory moves a little between two starts

Step = tuple[tuple[Limit, float], ...]


def steps_down(
    refusal: EngineRefusal, sizing: Sizing, *, missing_bytes: float = 0.0, attempts: int = 0
) -> tuple[tuple[Bound, ...], ...]:
    """The steps that may answer a refusal of this sizing, the mildest first.

    A later one is for where an earlier one changes nothing (the user pinned it) or leaves nothing
    that fits: at last less weight on each GPU, by another model, more GPUs, or another pool.
    None where memory is not the cause.

    `missing_bytes`: what earlier steps of this deployment already took off; `attempts`: their
    number.
    """
    ways = _WAYS.get(refusal.kind, _UNKNOWN if refusal.may_be_memory else ())
    asked = _Asked(refusal, sizing, missing_bytes, attempts)
    steps = (*(way(asked) for way in ways), *((_less_weight(asked),) if ways else ()))
    return tuple(
        tuple(Bound(sizing.pool.name, limit, value) for limit, value in step)
        for step in steps
        if step
    )


class _Asked:
    """One refusal, what was planned, and how far earlier steps went."""

    __slots__ = ("attempts", "missing_bytes", "planned_bytes", "refusal", "sizing", "stride")

    def __init__(
        self, refusal: EngineRefusal, sizing: Sizing, missing_bytes: float, attempts: int
    ) -> None:
        self.refusal, self.sizing = refusal, sizing
        self.missing_bytes, self.attempts = missing_bytes, attempts
        self.planned_bytes = sizing.budget.kv_cache_bytes.point
        self.stride = min(MOST_STRIDE, 2.0**attempts)


def _cache_as_named(asked: _Asked) -> Step:
    refusal, planned = asked.refusal, asked.planned_bytes
    if refusal.kv_available_gib is not None:
        missing = planned - refusal.kv_available_gib * GIB
        return ((Limit.MISSING_BYTES, asked.missing_bytes + max(missing, GIB // 64)),)
    length = refusal.estimated_max_model_len or refusal.kv_cache_tokens
    return ((Limit.MAX_MODEL_LEN, length),) if length else ()


def _less_cache(asked: _Asked) -> Step:
    missing = asked.planned_bytes * min(1.0, UNNAMED_SHORTFALL * asked.stride)
    return ((Limit.MISSING_BYTES, asked.missing_bytes + missing),)


def _no_cache(asked: _Asked) -> Step:
    """All of the planned cache is missing, and nobody says how much more."""
    return ((Limit.MISSING_BYTES, asked.missing_bytes + asked.planned_bytes),)


def _states(asked: _Asked) -> Step:
    most = asked.refusal.state_blocks
    return ((Limit.MAX_NUM_SEQS, max(1, most)),) if most else ()


def _free_as_named(asked: _Asked) -> Step:
    refusal, share = asked.refusal, _utilization(asked)
    if not (refusal.free_gib and refusal.total_gib):
        return ()
    free = refusal.free_gib * GIB - FREE_MEMORY_MARGIN_BYTES
    named = floor(free / (refusal.total_gib * GIB) * 100) / 100
    return ((Limit.GPU_MEMORY_UTILIZATION, max(0.0, min(named, share - 0.01))),)


def _fewer_batched_tokens(asked: _Asked) -> Step:
    batched = asked.sizing.settings.max_num_batched_tokens or LEAST_BATCHED_TOKENS
    if batched // 2 < LEAST_BATCHED_TOKENS:
        return ()
    return ((Limit.MAX_NUM_BATCHED_TOKENS, batched // 2),)


def _fewer_sequences(asked: _Asked) -> Step:
    return ((Limit.MAX_NUM_SEQS, max(1, asked.sizing.max_num_seqs // 2)),)


def _smaller_sampler(asked: _Asked) -> Step:
    """What is saved must not be spent again, and after a first try it may not be the sampler."""
    held = round(_utilization(asked) - UTILIZATION_STEP * (asked.stride - 1), 2)
    kept = (Limit.GPU_MEMORY_UTILIZATION, max(LEAST_UTILIZATION, held))
    return (*_fewer_sequences(asked), kept)


def _fewer_graphs(asked: _Asked) -> Step:
    largest = asked.sizing.settings.max_cudagraph_capture_size or 0
    if largest <= 8:
        return ()
    capture = (Limit.MAX_CUDAGRAPH_CAPTURE_SIZE, max(8, largest // 2))
    return (capture, *_lower_utilization(asked))


def _lower_utilization(asked: _Asked) -> Step:
    lower = round(_utilization(asked) - UTILIZATION_STEP * asked.stride, 2)
    return ((Limit.GPU_MEMORY_UTILIZATION, max(LEAST_UTILIZATION, lower)),)


def _guessed(asked: _Asked) -> Step:
    """Most starts that fail lack cache; only when less of that did not help, memory beside it."""
    if asked.attempts < GUESSES_AT_CACHE:
        return (*_less_cache(asked), *_fewer_batched_tokens(asked))
    return _lower_utilization(asked)


def _less_weight(asked: _Asked) -> Step:
    sizing = asked.sizing
    tried = Candidate(pool=sizing.pool, model=sizing.model, settings=sizing.settings)
    return ((Limit.WEIGHTS_BELOW_BYTES, heaviest_rank_bytes(tried)),)


def _utilization(asked: _Asked) -> float:
    return asked.sizing.settings.gpu_memory_utilization or 0.0


Ways = tuple[Callable[[_Asked], Step], ...]
_WAYS: dict[Refusal, Ways] = {
    Refusal.KV_CACHE_TOO_SMALL: (_cache_as_named, _less_cache),
    Refusal.NO_CACHE_BLOCKS: (_no_cache,),
    Refusal.STATE_BLOCKS_TOO_FEW: (_states, _fewer_sequences),
    Refusal.FREE_MEMORY: (_free_as_named, _lower_utilization),
    Refusal.OUT_OF_MEMORY_LOAD: (_less_weight,),
    Refusal.OUT_OF_MEMORY_PROFILE: (_fewer_batched_tokens, _fewer_sequences),
    Refusal.OUT_OF_MEMORY_SAMPLER: (_smaller_sampler, _lower_utilization),
    Refusal.OUT_OF_MEMORY_GRAPHS: (_fewer_graphs, _lower_utilization),
    Refusal.OUT_OF_MEMORY_SERVING: (_lower_utilization, _fewer_sequences),
}
# Nobody says what was missing, or whether it was memory.
_UNKNOWN: Ways = (_guessed, _lower_utilization)
