"""Several pools at once: who carries the replicas, through many decisions."""

from dataclasses import replace

import pytest

from builders_plan import node
from miniature import Cluster
from shipfitter.status.pods import ObservedEngine

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


SAMPLER = (
    "RuntimeError: CUDA out of memory occurred when warming up sampler with 96 dummy requests. "
    "Please try lowering `max_num_seqs` or `gpu_memory_utilization` when initializing the engine."
)
TOO_SMALL = (
    "ValueError: To serve at least one request with the model's max seq len (131072), (16.00 GiB "
    "KV cache is needed, which is larger than the available KV cache memory (12.00 GiB). Based "
    "on the available memory, the estimated maximum model length is 98304."
)


def ends(cluster, node_name, words):
    """The engines on a node ended with these words, and are started again and again."""
    cluster.pods = [
        replace(
            pod,
            ready=False,
            exit_code=1,
            restarts=1,
            waiting_reason="CrashLoopBackOff",
            termination_message=words,
        )
        if pod.node == node_name
        else pod
        for pod in cluster.pods
    ]


def body_on(cluster, node_name):
    """The workload whose pods are on a node."""
    (name,) = {pod.variant for pod in cluster.pods if pod.node == node_name}
    return cluster.bodies[name]


def test_a_refusal_steps_down_the_variant_concerned_and_no_other():
    cluster = spread()
    first, before = body_on(cluster, "a"), cluster.variants
    kept = {pod.name for pod in cluster.pods if pod.node == "a"}
    ends(cluster, "b", SAMPLER)
    cluster.decide()
    assert cluster.variants[0] == {**before[0], "decidedAt": cluster.variants[0]["decidedAt"]}
    assert cluster.variants[1]["maxNumSeqs"] < before[1]["maxNumSeqs"]
    assert cluster.variants[1]["maxModelLen"] == before[1]["maxModelLen"]
    assert body_on(cluster, "a") is first, "nothing of it was written"
    assert cluster.status["recovery"]["attempts"] == 1
    cluster.settle()
    assert kept < cluster.pod_names()
    assert cluster.split == {"L40S": 2, "A100": 1}


def test_a_refusal_of_the_length_itself_is_answered_for_all_or_elsewhere():
    cluster = spread()
    ends(cluster, "a", TOO_SMALL)
    cluster.settle()
    assert len({v["maxModelLen"] for v in cluster.variants}) == 1
    assert cluster.ready == 3 or cluster.condition("Available")["reason"] == "WaitingForGpu"
    assert cluster.status["recovery"]["attempts"] == 1


def test_each_variant_is_compared_with_its_own_engines_and_teaches_its_own_key():
    cluster = spread()
    planned = {v["name"]: v["numGpuBlocks"] for v in cluster.variants}
    cluster.pods = [
        replace(
            pod,
            observed=ObservedEngine(
                num_gpu_blocks=planned[pod.variant] * 97 // 100,
                kv_cache_tokens=planned[pod.variant] * 16 * 97 // 100,
                max_concurrency=1.5,
            ),
        )
        for pod in cluster.pods
    ]
    outcome = cluster.decide()
    observed = cluster.status["observed"]
    assert {entry["variant"] for entry in observed} == set(planned)
    assert all(entry["predictionErrorPercent"] == pytest.approx(-3, abs=0.1) for entry in observed)
    assert {u.key.gpu_product for u in outcome.calibrations} == {
        "NVIDIA-L40S",
        "NVIDIA-A100-SXM4-80GB",
    }
    assert not cluster.decide().calibrations, "once"


def test_five_refusals_of_one_variant_go_back_to_the_plan_that_served():
    cluster = spread()
    good = {v["name"]: v["maxNumSeqs"] for v in cluster.variants}
    cluster.spec["workload"] = {"typicalTokens": 1024}
    cluster.settle()
    for _ in range(8):
        cluster.now += 1000
        ends(cluster, "b", SAMPLER)
        cluster.decide()
        cluster._control()
        if {v["name"]: v["maxNumSeqs"] for v in cluster.variants} == good:
            break
    assert cluster.condition("Planned")["reason"] in ("RolledBack", "BackedOff")
    assert cluster.status["recovery"]["attempts"] <= 5


def test_what_free_gpus_would_take_is_said_where_replicas_wait():
    cluster = Cluster([node("a", "L40S", 1), node("b", "L4", 1)], {"replicas": 2})
    cluster.settle()
    assert cluster.planned == {"L40S": 2}
    told = cluster.condition("Available")["message"]
    assert "pool nvidia-l4-1 has free GPUs and holds max_model_len 17408" in told
    cluster.spec["workload"] = {"maxModelLen": {"preferred": 17_408}}
    cluster.settle()
    assert cluster.ready == 2
