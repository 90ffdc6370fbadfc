"""Replicas on several pools: one length for all, as few kinds as can be, and nobody moved."""

from dataclasses import replace

import pytest

from builders_plan import pool, wish
from shipfitter.core.intent import Wanted
from shipfitter.core.inventory import CapacitySource, PoolNode
from shipfitter.core.plan import Plan, solve
from shipfitter.core.quota import GpuQuota
from shipfitter.core.resplit import moved, placed, rescaled

SPELLED = {"A100": "A100-80GB"}


def with_free(product, free, gpus=8, **changes):
    """A pool of one node with so many GPUs free."""
    whole = pool(SPELLED.get(product, product), gpus, **changes)
    return replace(whole, nodes=(PoolNode(name=f"{product}-0", free_gpus=free),))


def planned(intent, *pools):
    plan = solve(intent, pools)
    assert isinstance(plan, Plan), str(plan)
    return plan.variants


def split(variants):
    return {v.sizing.pool.product.removeprefix("NVIDIA-")[:4]: v.replicas for v in variants}


def quota(hard, used=0, name="gpus"):
    return GpuQuota(name=name, resource_name="nvidia.com/gpu", hard=hard, used_by_others=used)


SPLITS = {  # replicas, free GPUs by type, more of the wish; who carries how many
    "all on one pool where it holds them": (3, {"L40S": 8, "A100": 8}, {}, {"L40S": 3}),
    "the rest goes to another pool": (3, {"L40S": 1, "A100": 2}, {}, {"L40S": 1, "A100": 2}),
    "one pool that holds all wins over two": (3, {"L40S": 2, "A100": 8}, {}, {"A100": 3}),
    "what fits nowhere waits with the first": (
        5,
        {"L40S": 1, "A100": 2},
        {},
        {"L40S": 3, "A100": 2},
    ),
    "one further pool is better than two": (
        4,
        {"L40S": 1, "A100": 1, "H100": 3},
        {},
        {"L40S": 1, "H100": 3},
    ),
    "three kinds where it takes three": (
        3,
        {"L40S": 1, "A100": 1, "H100": 1},
        {},
        {"L40S": 1, "A100": 1, "H100": 1},
    ),
    "a pool too small for the length is left out": (2, {"L40S": 1, "L4": 1}, {}, {"L40S": 2}),
    "and counts where so short a length is asked for": (
        2,
        {"L40S": 1, "L4": 1},
        {"max_model_len": Wanted(None, 16_384)},
        {"L4": 1, "L40S": 1},
    ),
    "nothing is spread where one node mounts the cache": (
        2,
        {"L40S": 1, "A100": 1},
        {"may_spread": False},
        {"L40S": 2},
    ),
    "no more than a quota allows is placed": (
        3,
        {"L40S": 1, "A100": 2},
        {"quotas": (quota(2),)},
        {"L40S": 2, "A100": 1},
    ),
}


@pytest.mark.parametrize("case", SPLITS)
def test_who_carries_the_replicas(case):
    replicas, free, more, want = SPLITS[case]
    pools = [with_free(product, count) for product, count in free.items()]
    variants = planned(wish(replicas=replicas, **more), *pools)
    assert split(variants) == want
    assert len({variant.sizing.max_model_len for variant in variants}) == 1
    assert variants[0].sizing.max_model_len == 131_072 or "max_model_len" in more


QWEN_32B = "Qwen/Qwen3-32B"
LONGER, SHORTER = with_free("H200", 1), with_free("H100", 1)


def alone(only, **wanted):
    """The length one pool gives for itself."""
    return planned(wish(QWEN_32B, **wanted), only)[0].sizing.max_model_len


def test_up_to_half_of_a_length_nobody_asked_for_is_given_up():
    short = alone(SHORTER)
    assert alone(LONGER) / 2 < short < alone(LONGER)
    variants = planned(wish(QWEN_32B, replicas=2), LONGER, SHORTER)
    assert [v.sizing.max_model_len for v in variants] == [short, short]
    assert split(variants) == {"H200": 1, "H100": 1}
    assert variants[0].sizing.limited_by == "the length that all replicas share"


def test_nothing_of_a_length_that_was_asked_for_is_given_up():
    asked = {"max_model_len": Wanted(None, 40_960)}
    variants = planned(wish(QWEN_32B, replicas=2, **asked), LONGER, SHORTER)
    assert split(variants) == {"H200": 2}
    assert variants[0].sizing.max_model_len == alone(LONGER, **asked)


@pytest.fixture
def two():
    """Two pools with room, and three replicas spread over them."""
    pools = (with_free("L40S", 2), with_free("A100", 4))
    tight = (with_free("L40S", 2), with_free("A100", 1))
    return pools, planned(wish(replicas=3), *tight)


RESCALED = {  # replicas wanted; GPUs that are free or ours; who carries how many then
    "the same number changes nothing": (3, (2, 1), {"L40S": 2, "A100": 1}),
    "one more goes where there is room": (4, (2, 4), {"L40S": 2, "A100": 2}),
    "to the first, if that has room": (4, (3, 4), {"L40S": 3, "A100": 1}),
    "one more without room waits with the first": (4, (2, 1), {"L40S": 3, "A100": 1}),
    "one less goes from the last": (2, (2, 1), {"L40S": 2}),
    "the last goes before the first is touched": (1, (2, 1), {"L40S": 1}),
    "none at all leaves the first": (0, (2, 1), {"L40S": 0}),
}


@pytest.mark.parametrize("case", RESCALED)
def test_another_number_of_replicas(case, two):
    _, variants = two
    replicas, (first, second), want = RESCALED[case]
    pools = (with_free("L40S", first), with_free("A100", second))
    after = rescaled(
        wish(replicas=replicas), pools, variants, {"nvidia-l40s-8": 2, "nvidia-a100-sxm4-80gb-8": 1}
    )
    assert split(after) == want
    kept = {v.sizing.pool.name: v.sizing for v in variants}
    assert all(kept.get(v.sizing.pool.name) == v.sizing for v in after)


def test_fewer_replicas_are_taken_from_those_that_wait():
    first = planned(wish(replicas=2), with_free("L40S", 2))
    tight = (with_free("L40S", 1), with_free("A100", 1))
    spread = rescaled(wish(replicas=3), tight, first, {"nvidia-l40s-8": 1})
    assert split(spread) == {"L40S": 2, "A100": 1}
    held = {"nvidia-l40s-8": 1, spread[1].sizing.pool.name: 1}
    assert split(rescaled(wish(replicas=2), tight, spread, held)) == {"L40S": 1, "A100": 1}


def test_a_waiting_replica_moves_where_a_gpu_is_free_and_nobody_else_does():
    first = planned(wish(replicas=2), with_free("L40S", 2))
    tight = (with_free("L40S", 1), with_free("A100", 3))
    better = moved(wish(replicas=2), tight, first, {"nvidia-l40s-8": 1})
    assert split(better) == {"L40S": 1, "A100": 1}
    assert moved(wish(replicas=2), tight, better, {}) is None


def test_a_cordoned_node_does_not_make_its_replica_wait():
    first = planned(wish(replicas=2), with_free("L40S", 2))
    cordoned = (with_free("L40S", 1), with_free("A100", 3))
    assert placed(wish(replicas=2), cordoned, first, {"nvidia-l40s-8": 2}) == (2,)
    assert moved(wish(replicas=2), cordoned, first, {"nvidia-l40s-8": 2}) is None


COMING = {"source": CapacitySource.EXPECTED, "nodes": 0}


def test_what_fits_nowhere_goes_where_nodes_may_come_for_it():
    coming = pool("H100", 8, **COMING)
    variants = planned(wish(replicas=3), with_free("L40S", 1), coming)
    assert split(variants) == {"L40S": 1, "H100": 2}
    more = rescaled(wish(replicas=4), (with_free("L40S", 1), coming), variants, {})
    assert split(more) == {"L40S": 1, "H100": 3}
    there = (with_free("L40S", 3), coming)
    assert split(moved(wish(replicas=4), there, more, {"nvidia-l40s-8": 1})) == {
        "L40S": 3,
        "H100": 1,
    }


def test_it_waits_with_the_first_where_nodes_of_that_kind_come():
    growing = with_free("L40S", 1, grows=True)
    coming = pool("H100", 8, **COMING)
    assert split(planned(wish(replicas=3), growing, coming)) == {"L40S": 3}
    full = with_free("L40S", 0, grows=True)
    assert split(planned(wish(replicas=1), full, coming)) == {"L40S": 1}


def test_what_waits_where_no_node_will_come_goes_where_one_may():
    waiting = planned(wish(replicas=2), with_free("L40S", 1))
    coming = pool("H100", 8, **COMING)
    pools = (with_free("L40S", 1), coming)
    better = moved(wish(replicas=2), pools, waiting, {"nvidia-l40s-8": 1})
    assert split(better) == {"L40S": 1, "H100": 1}
    assert moved(wish(replicas=2), pools, better, {"nvidia-l40s-8": 1}) is None


def test_replicas_that_run_count_where_they_run_whatever_was_recorded():
    """A record of an earlier release says how many replicas there were when it was decided."""
    (variant,) = planned(wish(replicas=1), with_free("L40S", 3))
    pools = (with_free("L40S", 1), with_free("A100", 3))  # two of its nodes are cordoned
    after = rescaled(wish(replicas=3), pools, (variant,), {"nvidia-l40s-8": 3})
    assert split(after) == {"L40S": 3}
