"""A running plan's replicas under another number of them, or where some find no GPU any more.

A replica that has its GPUs stays where it is: more replicas go where there is room, in the order of
the variants, and fewer are taken from those that wait, then from the variant ranked last.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from shipfitter.core.intent import Intent, Verdict
from shipfitter.core.inventory import Pool
from shipfitter.core.room import Room
from shipfitter.core.spread import VariantPlan, further, may_come, with_waiting

NOBODY: Mapping[str, int] = {}


def placed(
    intent: Intent,
    pools: tuple[Pool, ...],
    variants: Sequence[VariantPlan],
    held: Mapping[str, int] = NOBODY,
) -> tuple[int, ...]:
    """Of each variant's replicas those that have GPUs or find some now.

    `held`: replicas with GPUs, by pool: they count even where their node takes no new pods.
    """
    return _seated(Room(pools, intent.quotas), variants, held)


def _seated(
    room: Room, variants: Sequence[VariantPlan], held: Mapping[str, int]
) -> tuple[int, ...]:
    """The same, with the room for more left behind."""
    seats = [min(v.replicas, held.get(v.sizing.pool.name, 0)) for v in variants]
    for variant, count in zip(variants, seats, strict=True):
        room.take(variant.sizing, count)
    for index, variant in enumerate(variants):
        more = min(variant.replicas - seats[index], room.more(variant.sizing))
        room.take(variant.sizing, more)
        seats[index] += more
    return tuple(seats)


def rescaled(
    intent: Intent,
    pools: tuple[Pool, ...],
    variants: Sequence[VariantPlan],
    held: Mapping[str, int] = NOBODY,
) -> tuple[VariantPlan, ...]:
    """The variants with as many replicas as are wanted now; a new one only where they are full."""
    counts = [variant.replicas for variant in variants]
    room = Room(pools, intent.quotas)
    seats = _seated(room, variants, held)
    surplus = sum(counts) - intent.replicas
    if surplus >= 0:
        for index in reversed(range(len(counts))):
            waiting = min(surplus, counts[index] - seats[index])
            counts[index] -= waiting
            surplus -= waiting
        for index in reversed(range(len(counts))):
            taken = min(surplus, counts[index])
            counts[index] -= taken
            surplus -= taken
        return _with(variants, counts)
    rest = _filled(room, variants, counts, _counted(room, variants, counts, -surplus, held))
    new = _further(intent, pools, variants, rest, room)
    waiting = rest - sum(variant.replicas for variant in new)
    found = (*_with(variants, counts), *new)
    return with_waiting(intent, pools, found, waiting, point=_point(variants))


def moved(
    intent: Intent,
    pools: tuple[Pool, ...],
    variants: Sequence[VariantPlan],
    held: Mapping[str, int] = NOBODY,
) -> tuple[VariantPlan, ...] | None:
    """The plan with replicas that wait for a GPU where one is free; None where that helps none.

    Where none is free, they go where nodes may come for them.
    """
    counts = [variant.replicas for variant in variants]
    room = Room(pools, intent.quotas)
    waits = [
        count - seats for count, seats in zip(counts, _seated(room, variants, held), strict=True)
    ]
    waiting = sum(waits)
    rest = _filled(room, variants, counts, waiting)
    new = _further(intent, pools, variants, rest, room)
    helped = waiting - rest + sum(variant.replicas for variant in new)
    if not helped:
        return _to_awaited(intent, pools, variants, waits)
    for index in reversed(range(len(waits))):
        gone = min(helped, waits[index])
        counts[index] -= gone
        helped -= gone
    return (*_with(variants, counts), *new)


def _to_awaited(
    intent: Intent, pools: tuple[Pool, ...], variants: Sequence[VariantPlan], waits: list[int]
) -> tuple[VariantPlan, ...] | None:
    """Replicas that wait where no node will come, on a pool whose nodes may."""
    stuck = [0 if may_come(v.sizing.pool) else w for v, w in zip(variants, waits, strict=True)]
    if not any(stuck):
        return None
    counts = [v.replicas - each for v, each in zip(variants, stuck, strict=True)]
    rest = tuple(replace(v, replicas=count) for v, count in zip(variants, counts, strict=True))
    found = with_waiting(intent, pools, rest, sum(stuck), point=_point(variants))
    kept = tuple(variant for variant in found if variant.replicas)
    return kept if any(may_come(v.sizing.pool) for v in kept) else None


def _counted(
    room: Room,
    variants: Sequence[VariantPlan],
    counts: list[int],
    rest: int,
    held: Mapping[str, int],
) -> int:
    """Gives replicas to variants that have more of them with GPUs than were counted; the rest."""
    for index, variant in enumerate(variants):
        more = min(rest, max(0, held.get(variant.sizing.pool.name, 0) - counts[index]))
        room.take(variant.sizing, more)
        counts[index] += more
        rest -= more
    return rest


def _filled(room: Room, variants: Sequence[VariantPlan], counts: list[int], rest: int) -> int:
    """Gives replicas to variants that have room; how many are left over."""
    for index, variant in enumerate(variants):
        more = min(rest, room.more(variant.sizing))
        room.take(variant.sizing, more)
        counts[index] += more
        rest -= more
    return rest


def _further(
    intent: Intent,
    pools: tuple[Pool, ...],
    variants: Sequence[VariantPlan],
    rest: int,
    room: Room,
) -> tuple[VariantPlan, ...]:
    return further(intent, pools, variants, rest, room, point=_point(variants))


def _point(variants: Sequence[VariantPlan]) -> bool:
    """Whether the plan rests on the point estimate."""
    return any(variant.sizing.verdict is Verdict.BORDERLINE for variant in variants)


def _with(variants: Sequence[VariantPlan], counts: Sequence[int]) -> tuple[VariantPlan, ...]:
    """The variants that carry replicas; the first stays where none does."""
    kept = [
        replace(variant, replicas=count)
        for variant, count in zip(variants, counts, strict=True)
        if count
    ]
    return tuple(kept) or (replace(variants[0], replicas=0),)
