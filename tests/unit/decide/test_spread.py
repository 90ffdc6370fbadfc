"""Several pools at once: who carries the replicas, through many decisions."""

from builders_plan import node
from miniature import Cluster

SOON = {"stabilizationSeconds": 60}


def spread(replicas=3, **spec):
    """Two pools, neither of which holds three replicas."""
    cluster = Cluster([node("a", "L40S", 2), node("b", "A100-80GB", 4)], {"replicas": replicas})
    cluster.take("b", 3)
    cluster.spec |= {"resize": SOON, **spec}
    cluster.settle()
    return cluster


def test_three_replicas_over_two_pools_have_one_length_and_own_arguments():
    cluster = spread()
    assert cluster.split == {"L40S": 2, "A100": 1}
    first, second = cluster.variants
    assert first["maxModelLen"] == second["maxModelLen"] == 131_072
    assert first["maxNumSeqs"] < second["maxNumSeqs"]
    assert cluster.status["readyReplicas"] == cluster.status["replicas"] == 3
    assert cluster.condition("Ready")["status"] == "True"
    planned = cluster.condition("Planned")
    assert planned["reason"] == "Fits"
    assert "2 on 1 × NVIDIA-L40S" in planned["message"]
    assert "1 on 1 × NVIDIA-A100-SXM4-80GB" in planned["message"]
    assert cluster.status["summary"]["gpu"] == "NVIDIA-L40S +1"
    assert len(cluster.status["lastGoodPlan"]["variants"]) == 2


def test_a_second_look_changes_nothing():
    cluster = spread()
    before, events = cluster.picture(), list(cluster.events)
    cluster.wait(10_000)
    assert cluster.picture() == before
    assert cluster.events == events
    assert not cluster.removed


def test_another_number_of_replicas_moves_nobody():
    cluster = spread()
    names = cluster.pod_names()
    cluster.take("b", 0)
    cluster.scale(5)
    cluster.settle()
    assert cluster.split == {"L40S": 2, "A100": 3}
    assert names < cluster.pod_names()
    cluster.scale(2)
    cluster.settle()
    assert cluster.split == {"L40S": 2}
    assert cluster.pod_names() <= names
    assert len(cluster.bodies) == 1, "a variant without replicas is no longer there"
    cluster.scale(3)
    cluster.settle()
    assert cluster.split == {"L40S": 2, "A100": 1}


def test_a_variant_that_joins_changes_nothing_in_the_one_that_runs():
    cluster = spread(replicas=2)
    assert cluster.split == {"L40S": 2}
    (first,) = cluster.bodies.values()
    cluster.scale(3)
    cluster.settle()
    assert cluster.split == {"L40S": 2, "A100": 1}
    assert first in cluster.bodies.values() or cluster.bodies[first["metadata"]["name"]] == first
    assert cluster.events[-1] == "1 on 1 × NVIDIA-A100-SXM4-80GB: no GPU of nvidia-l40s-2 is free"
    assert cluster.variants[1]["decidedAt"] > cluster.status["plan"]["decidedAt"]


def test_what_fits_nowhere_waits_with_the_first_and_says_for_what():
    cluster = spread(replicas=4)
    assert cluster.planned == {"L40S": 3, "A100": 1}
    waits = cluster.condition("Available")
    assert waits["reason"] == "WaitingForGpu"
    assert "3 of 4 replicas serve; 1 pod waits for 1 × NVIDIA-L40S in pool" in waits["message"]


def test_a_replica_that_waits_goes_where_a_gpu_becomes_free_once_that_lasts():
    cluster = spread(replicas=4)
    cluster.take("b", 2)
    cluster.settle()
    assert cluster.condition("Drifted")["reason"] == "ResizePending"
    assert cluster.split == {"L40S": 2, "A100": 1}
    cluster.wait(60)
    assert cluster.split == {"L40S": 2, "A100": 2}
    assert not cluster.removed


def test_room_on_the_first_pool_is_no_reason_to_move_who_serves_as_well_elsewhere():
    cluster = spread()
    cluster.nodes.append(node("c", "L40S", 2))
    before = cluster.pod_names()
    cluster.wait(1000)
    assert cluster.pod_names() == before


def test_a_pool_that_disappears_leaves_its_replicas_to_the_others():
    cluster = spread()
    cluster.take("b", 0)
    stayed = {p.name for p in cluster.pods if p.node == "b"}
    cluster.remove_node("a")
    cluster.wait(60)
    assert cluster.split == {"A100": 3}
    assert stayed < cluster.pod_names()
    assert not cluster.removed
    assert len(cluster.bodies) == 1


def test_a_pool_that_disappears_where_nothing_else_is_free_is_waited_for():
    cluster = spread()
    stayed = {p.name for p in cluster.pods if p.node == "b"}
    cluster.remove_node("a")
    cluster.wait(60)
    assert cluster.split == {"A100": 1}
    assert stayed < cluster.pod_names()
    assert cluster.condition("Available")["reason"] == "WaitingForGpu"
    cluster.nodes.append(node("a", "L40S", 2))
    cluster.wait(600)
    assert cluster.ready == 3


def test_a_lost_status_is_rebuilt_from_what_the_workloads_carry():
    cluster = spread(replicas=2)
    cluster.scale(3)
    cluster.settle()
    before, plan = cluster.pod_names(), cluster.status["plan"]
    cluster.lose_status()
    cluster.settle()
    assert cluster.pod_names() == before
    assert cluster.status["plan"]["variants"] == plan["variants"]


def test_another_wish_moves_all_variants_without_losing_more_than_one_replica():
    cluster = spread()
    cluster.least_ready = 3
    cluster.spec["workload"] = {"maxNumSeqs": {"preferred": 32}}
    cluster.settle()
    assert cluster.split == {"L40S": 2, "A100": 1}
    assert {v["maxNumSeqs"] for v in cluster.variants} == {32}
    assert cluster.least_ready >= 2
    assert len(cluster.removed) == 3


def test_a_quota_bounds_what_is_asked_for_and_more_follows_when_it_is_raised():
    cluster = Cluster([node("a", "L40S", 4)], {"replicas": 3}, hard_quota=2)
    cluster.settle()
    assert cluster.split == {"L40S": 2}
    cluster.hard_quota = 3
    cluster.settle()
    assert cluster.split == {"L40S": 3}


def test_under_a_full_quota_a_new_plan_replaces_one_replica_after_the_other():
    cluster = Cluster([node("a", "L40S", 4)], {"replicas": 2}, hard_quota=2)
    cluster.settle()
    cluster.least_ready = 2
    cluster.spec["gpus"] = {"products": ["NVIDIA-L40S"]}
    cluster.spec["workload"] = {"maxNumSeqs": {"preferred": 32}}
    cluster.settle()
    assert cluster.split == {"L40S": 2}
    assert {v["maxNumSeqs"] for v in cluster.variants} == {32}
