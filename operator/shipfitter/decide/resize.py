"""What a fresh plan would bring over the one that runs."""

from collections.abc import Sequence
from dataclasses import dataclass

from shipfitter.core.candidate import Sizing
from shipfitter.core.goals import Goals
from shipfitter.core.intent import Intent
from shipfitter.core.plan import Plan

PREFERRED_MODEL_PERCENT = 1e6  # an earlier model in the list outweighs any numbers


@dataclass(frozen=True, slots=True)
class Gain:
    """What a fresh sizing would bring over the running one."""

    percent: float
    sentence: str  # "max_model_len 16384 → 131072, max_num_seqs 16 → 96"
    starts: bool = False  # the running plan finds no GPU, the fresh one does


def gain(intent: Intent, running: Sizing, fresh: Sizing) -> Gain:
    """How much more of the preferred length and sequences the fresh sizing reaches, in per cent.

    The value of a sizing is the product of both shares of their preferred values, so a doubled
    length counts as much as doubled sequences, and what is beyond the preferred counts nothing.
    An earlier model in the list is worth any number.
    """
    return Gain(
        _percent(intent, (running,), (1,), (fresh,), (1,)),
        changes(running, fresh),
    )


def plan_percent(
    intent: Intent, running: Plan, seats: Sequence[int], fresh: Plan, fresh_seats: Sequence[int]
) -> float:
    """The gain of a plan over another: the values of all replicas that have GPUs, together.

    With no replica wanted, one of each counts, so that a plan stays worth having.
    """
    return _percent(
        intent,
        tuple(variant.sizing for variant in running.variants),
        seats if intent.replicas else (1,) * len(running.variants),
        tuple(variant.sizing for variant in fresh.variants),
        fresh_seats if intent.replicas else (1,) * len(fresh.variants),
    )


def _percent(
    intent: Intent,
    running: Sequence[Sizing],
    seats: Sequence[int],
    fresh: Sequence[Sizing],
    fresh_seats: Sequence[int],
) -> float:
    before, after = _sum(intent, running, seats), _sum(intent, fresh, fresh_seats)
    start_percent = PREFERRED_MODEL_PERCENT if after else 0.0
    percent = (after / before - 1) * 100 if before else start_percent
    uris = [model.uri for model in intent.models]
    old, new = running[0].model.uri, fresh[0].model.uri
    if old in uris and uris.index(new) < uris.index(old):
        percent = max(percent, PREFERRED_MODEL_PERCENT)
    return percent


def _sum(intent: Intent, sizings: Sequence[Sizing], seats: Sequence[int]) -> float:
    return sum(_value(intent, sizing) * count for sizing, count in zip(sizings, seats, strict=True))


def start(waiting: Sizing, fresh: Sizing) -> Gain:
    """Nothing runs and something could: worth any numbers."""
    pools = f"pool {waiting.pool.name} → {fresh.pool.name}"
    return Gain(PREFERRED_MODEL_PERCENT, changes(waiting, fresh) or pools, starts=True)


def _value(intent: Intent, sizing: Sizing) -> float:
    goals = Goals.of(intent, sizing.model, intent.engine)
    return min(1.0, sizing.max_model_len / goals.preferred_len) * min(
        1.0, sizing.max_num_seqs / goals.preferred_seqs
    )


def changes(running: Sizing, fresh: Sizing) -> str:
    """The figures that differ, old → new, for events and reasons."""
    pairs = (
        ("model", running.model.facts.name, fresh.model.facts.name),
        ("GPU", _gpus(running), _gpus(fresh)),
        ("max_model_len", running.max_model_len, fresh.max_model_len),
        ("max_num_seqs", running.max_num_seqs, fresh.max_num_seqs),
        (
            "max_num_batched_tokens",
            running.settings.max_num_batched_tokens,
            fresh.settings.max_num_batched_tokens,
        ),
        (
            "gpu_memory_utilization",
            running.settings.gpu_memory_utilization,
            fresh.settings.gpu_memory_utilization,
        ),
        (
            "max_cudagraph_capture_size",
            running.settings.max_cudagraph_capture_size,
            fresh.settings.max_cudagraph_capture_size,
        ),
        ("kv_cache_dtype", running.settings.kv_cache_dtype, fresh.settings.kv_cache_dtype),
    )
    return ", ".join(f"{name} {old} → {new}" for name, old, new in pairs if old != new)


def _gpus(sizing: Sizing) -> str:
    return f"{sizing.gpus_per_replica} × {sizing.pool.product}"
