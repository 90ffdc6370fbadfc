"""Generated clusters and stories: replicas add up, nobody moves for nothing, nothing alternates."""

import hypothesis.strategies as st
from hypothesis import HealthCheck, given, settings

from builders_plan import node, wish
from miniature import Cluster
from shipfitter.core.intent import Wanted
from shipfitter.core.plan import Plan, solve
from shipfitter.core.quota import GpuQuota
from shipfitter.core.resplit import moved, placed, rescaled
from unit.core.test_spread import with_free

TYPES = ("L4", "L40S", "A100", "H100")
QUICK = settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
free_gpus = st.dictionaries(st.sampled_from(TYPES), st.integers(0, 4), min_size=1)
lengths = st.sampled_from([Wanted(), Wanted(None, 16_384), Wanted(8192, 65_536)])
hard = st.one_of(st.none(), st.integers(1, 8))


def pools_of(free):
    return tuple(with_free(product, count) for product, count in sorted(free.items()))


def quotas_of(most):
    if most is None:
        return ()
    return (GpuQuota(name="q", resource_name="nvidia.com/gpu", hard=most),)


def planned(intent, pools):
    plan = solve(intent, pools)
    assert isinstance(plan, Plan), str(plan)
    return plan


@QUICK
@given(free_gpus, st.integers(0, 6), lengths, hard)
def test_replicas_add_up_and_all_have_one_length(free, replicas, length, most):
    intent = wish(replicas=replicas, max_model_len=length, quotas=quotas_of(most))
    pools = pools_of(free)
    variants = planned(intent, pools).variants
    assert sum(v.replicas for v in variants) == replicas
    assert len({v.sizing.max_model_len for v in variants}) == 1
    assert len({v.sizing.pool.name for v in variants}) == len(variants)
    assert len(variants) == 1 or all(v.replicas for v in variants)
    seats = placed(intent, pools, variants)
    waiting = [v.replicas - s for v, s in zip(variants, seats, strict=True)]
    assert not any(waiting[1:]), "what waits, waits with the first"
    if most is not None:
        gpus = [s * v.sizing.gpus_per_replica for s, v in zip(seats, variants, strict=True)]
        assert sum(gpus) <= most


@QUICK
@given(free_gpus, st.integers(1, 6), st.sampled_from(TYPES))
def test_more_gpus_never_place_fewer_replicas(free, replicas, product):
    intent = wish(replicas=replicas)
    before, after = pools_of(free), pools_of({**free, product: free.get(product, 0) + 1})
    less, more = planned(intent, before), planned(intent, after)
    length = less.variants[0].sizing.max_model_len
    if more.variants[0].sizing.max_model_len == length:
        assert sum(placed(intent, after, more.variants)) >= sum(
            placed(intent, before, less.variants)
        )


@QUICK
@given(free_gpus, st.lists(st.integers(0, 6), min_size=2, max_size=5), hard)
def test_other_numbers_of_replicas_keep_who_serves(free, numbers, most):
    pools, quotas = pools_of(free), quotas_of(most)
    variants = planned(wish(replicas=numbers[0], quotas=quotas), pools).variants
    for replicas in numbers[1:]:
        intent = wish(replicas=replicas, quotas=quotas)
        held = {
            v.sizing.pool.name: seats
            for v, seats in zip(variants, placed(intent, pools, variants), strict=True)
        }
        after = rescaled(intent, pools, variants, held)
        assert sum(v.replicas for v in after) == replicas
        assert rescaled(intent, pools, after, held) == after, "twice is once"
        there = {v.sizing.pool.name: v for v in variants}
        if replicas >= sum(v.replicas for v in variants):
            kept = {v.sizing.pool.name: v for v in after}
            for name, seats in held.items():
                assert not seats or kept[name].replicas >= seats, "nobody who serves is moved"
        assert all(
            v.sizing == there[v.sizing.pool.name].sizing
            for v in after
            if v.sizing.pool.name in there
        )
        better = moved(intent, pools, after, held)
        if better is not None:
            assert sum(v.replicas for v in better) == replicas
            assert sum(placed(intent, pools, better)) >= sum(placed(intent, pools, after))
        variants = after


NODES = {"a": "L40S", "b": "A100-80GB", "c": "H100"}
steps = st.lists(
    st.one_of(
        st.tuples(st.just("scale"), st.integers(0, 5)),
        st.tuples(st.just("take"), st.sampled_from(sorted(NODES)), st.integers(0, 3)),
        st.tuples(st.just("remove"), st.sampled_from(sorted(NODES))),
        st.tuples(st.just("join"), st.sampled_from(sorted(NODES)), st.integers(1, 3)),
        st.tuples(st.just("quota"), st.integers(1, 8)),
        st.tuples(st.just("forget")),
    ),
    min_size=1,
    max_size=5,
)


def happen(cluster, step):
    """One thing that changes the world."""
    what, *rest = step
    names = {n.name for n in cluster.nodes}
    if what == "scale":
        cluster.scale(*rest)
    elif what == "take" and rest[0] in names:
        mine = sum(p.gpus for p in cluster.pods if p.node == rest[0])
        (there,) = (n for n in cluster.nodes if n.name == rest[0])
        cluster.take(rest[0], min(rest[1], there.allocatable_gpus - mine))
    elif what == "remove":
        cluster.remove_node(rest[0])
    elif what == "join" and rest[0] not in names:
        cluster.nodes.append(node(rest[0], NODES[rest[0]], rest[1]))
    elif what == "quota":
        cluster.hard_quota = rest[0]
    elif what == "forget":
        cluster.lose_status()


@settings(QUICK, max_examples=12)
@given(steps)
def test_every_story_comes_to_rest_and_stays_there(story):
    cluster = Cluster(
        [node("a", "L40S", 2), node("b", "A100-80GB", 2)],
        {"replicas": 3, "resize": {"stabilizationSeconds": 60}},
    )
    cluster.settle()
    for step in story:
        served = cluster.ready
        ends = len(cluster.removed)
        happen(cluster, step)
        cluster.least_ready = cluster.ready
        cluster.settle(rounds=60)
        cluster.wait(120)
        if step[0] in ("take", "join", "quota", "forget"):
            assert cluster.least_ready >= min(served, cluster.spec["replicas"])
        if step[0] in ("take", "quota", "forget"):
            assert len(cluster.removed) == ends, "nobody who serves is ended"
    at_rest = cluster.picture()
    cluster.wait(10_000)
    assert cluster.picture() == at_rest
    assert sum(v["replicas"] for v in cluster.variants) == cluster.spec["replicas"]
