"""Replicas of one deployment on several pools: one length for all, as few kinds of GPU as can be.

A request that one replica accepts must not be refused by another behind the same Service, so all
variants share the model and max_model_len. How much of the length may go for that:
docs/adr/0009-what-may-spreading-cost.md.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from shipfitter.core.candidate import Sizing
from shipfitter.core.candidates import usable_pools
from shipfitter.core.fitting import at_length, best_on, rank
from shipfitter.core.goals import Goals
from shipfitter.core.intent import Intent
from shipfitter.core.inventory import CapacitySource, Pool
from shipfitter.core.room import Room

MOST_VARIANTS = 8
# Of a length that nobody asked for, this part stays; of one that was asked for, all of it.
LEAST_SHARE_OF_LENGTH = 1 / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantPlan:
    """A sizing and how many replicas it carries."""

    sizing: Sizing
    replicas: int
    decided_at: str = ""  # when its figures were decided, where that was before; empty: now


def least_length(intent: Intent, first: Sizing) -> int:
    """What all variants must hold for replicas of this sizing to be spread further."""
    if intent.max_model_len.preferred is not None:
        return first.max_model_len
    least = Goals.of(intent, first.model, intent.engine).min_len
    return max(least, int(first.max_model_len * LEAST_SHARE_OF_LENGTH))


def spread(
    intent: Intent,
    pools: tuple[Pool, ...],
    first: Sizing,
    *,
    point: bool,
    awaited: tuple[Pool, ...] = (),
) -> tuple[VariantPlan, ...]:
    """The first sizing's replicas; those that find no GPU there go to other pools where they can.

    What fits nowhere waits; `awaited`: pools whose nodes are still to come. The length is the
    longest under which most replicas find a place.
    """
    room = Room(pools, intent.quotas)
    here = min(intent.replicas, room.more(first))
    rest = intent.replicas - here
    if not (rest and here and intent.may_spread):
        return (VariantPlan(sizing=first, replicas=intent.replicas),)
    room.take(first, here)
    least = least_length(intent, first)
    offers = [
        sizing
        for sizing in _offers(intent, pools, first, point=point)
        if sizing.max_model_len >= least and room.more(sizing)
    ]
    lengths = {min(first.max_model_len, sizing.max_model_len) for sizing in offers}
    found: tuple[VariantPlan, ...] = ()
    for length in sorted(lengths, reverse=True):
        more = _handed_out(intent, offers, rest, length, room, point=point)
        start = at_length(intent, first, length, point=point)
        if start is None or sum(v.replicas for v in more) <= sum(v.replicas for v in found[1:]):
            continue
        found = (VariantPlan(sizing=start, replicas=here), *more)
    found = found or (VariantPlan(sizing=first, replicas=here),)
    waiting = intent.replicas - sum(variant.replicas for variant in found)
    return with_waiting(intent, awaited, found, waiting, point=point)


def with_waiting(
    intent: Intent,
    pools: tuple[Pool, ...],
    variants: tuple[VariantPlan, ...],
    waiting: int,
    *,
    point: bool,
) -> tuple[VariantPlan, ...]:
    """The variants with replicas that found no room: where nodes may come for them, else first."""
    if not waiting:
        return variants
    can_come = [index for index, v in enumerate(variants) if may_come(v.sizing.pool)]
    new = None if can_come else _awaited(intent, pools, variants, point=point)
    if new is not None:
        return (*variants, VariantPlan(sizing=new, replicas=waiting))
    index = can_come[0] if can_come else 0
    joined = replace(variants[index], replicas=variants[index].replicas + waiting)
    return (*variants[:index], joined, *variants[index + 1 :])


def may_come(pool: Pool) -> bool:
    """Whether an autoscaler makes nodes of this pool for pods that wait."""
    return pool.grows or pool.source is CapacitySource.EXPECTED


def _awaited(
    intent: Intent, pools: tuple[Pool, ...], variants: tuple[VariantPlan, ...], *, point: bool
) -> Sizing | None:
    """The best of the pools whose nodes are still to come, at the length that all share."""
    if not intent.may_spread or len(variants) >= MOST_VARIANTS:
        return None
    first = variants[0].sizing
    taken = {variant.sizing.pool.name for variant in variants}
    coming = (
        pool
        for pool in usable_pools(intent, pools)
        if pool.source is CapacitySource.EXPECTED and pool.name not in taken
    )
    able = [
        sizing
        for pool in coming
        if (sizing := best_on(intent, pool, first.model, point=point))
        and sizing.max_model_len >= first.max_model_len
    ]
    best = min(able, key=lambda sizing: rank(intent, sizing), default=None)
    return at_length(intent, best, first.max_model_len, point=point) if best else None


def further(
    intent: Intent,
    pools: tuple[Pool, ...],
    variants: Sequence[VariantPlan],
    rest: int,
    room: Room,
    *,
    point: bool,
) -> tuple[VariantPlan, ...]:
    """New variants beside those that run, which keep their length, for replicas that find room."""
    if not (rest and intent.may_spread and variants):
        return ()
    first = variants[0].sizing
    taken = {variant.sizing.pool.name for variant in variants}
    offers = [
        sizing
        for sizing in _offers(intent, pools, first, point=point)
        if sizing.pool.name not in taken
    ]
    most = MOST_VARIANTS - len(variants)
    return _handed_out(intent, offers, rest, first.max_model_len, room, point=point)[:most]


def _offers(
    intent: Intent, pools: tuple[Pool, ...], first: Sizing, *, point: bool
) -> Iterable[Sizing]:
    """The best of every other pool with free GPUs, for the same model."""
    for pool in usable_pools(intent, pools):
        if pool.name != first.pool.name and pool.free_gpus:
            sizing = best_on(intent, pool, first.model, point=point)
            if sizing is not None:
                yield sizing


def _handed_out(
    intent: Intent,
    offers: Sequence[Sizing],
    rest: int,
    length: int,
    room: Room,
    *,
    point: bool,
) -> tuple[VariantPlan, ...]:
    """The rest on pools that hold this length of their own accord, fewest pools first."""
    room = room.copy()
    able = [sizing for sizing in offers if sizing.max_model_len >= length]
    variants: list[VariantPlan] = []
    while rest and able and len(variants) < MOST_VARIANTS - 1:
        best = min(able, key=lambda s: (-min(rest, room.more(s)), rank(intent, s)))
        able.remove(best)
        sizing = at_length(intent, best, length, point=point)
        taken = min(rest, room.more(sizing)) if sizing else 0
        if sizing is None or not taken:
            continue
        room.take(sizing, taken)
        variants.append(VariantPlan(sizing=sizing, replicas=taken))
        rest -= taken
    return tuple(variants)
