"""A quota on GPUs is part of what is free: never planned beyond, and named where it limits."""

from dataclasses import replace

from builders_decide import Settled, condition, manifests, mdl, world
from builders_plan import LLAMA_70B, facts, node
from shipfitter.core.quota import GpuQuota
from shipfitter.decide import LiveWorkload, decide

FULL = node("a", "L40S", 8)
SCALED = ("Deployment", "shipfitter-scale")


def quota(hard, used_by_others=0, name="team"):
    return GpuQuota(
        name=name, resource_name="nvidia.com/gpu", hard=hard, used_by_others=used_by_others
    )


def replicas(outcome):
    (deployment,) = manifests(outcome, "Deployment")
    return deployment["spec"]["replicas"]


def test_no_more_is_asked_for_than_the_tightest_allows():
    outcome = decide(mdl(replicas=4), world(FULL, quotas=(quota(3), quota(8, 6, "all"))))
    assert replicas(outcome) == 2


def test_it_is_named_with_what_would_do_once_the_rest_serves():
    settled = Settled(FULL, replicas=2)
    outcome = settled.decide(
        FULL,
        spec={"replicas": 4},
        quotas=(quota(3, 1),),
        own_requests={"nvidia.com/gpu": 2},
    )
    told = condition(outcome, "Available")
    assert (told["status"], told["reason"]) == ("False", "QuotaExceeded")
    assert told["message"] == (
        "2 of 4 replicas serve; ResourceQuota team allows 3 nvidia.com/gpu, of which others use 1: "
        "raise its requests.nvidia.com/gpu to 5 for all 4 replicas"
    )
    assert not manifests(outcome, "Deployment", "shipfitter-scale")


def test_a_quota_that_shrinks_takes_nothing_away():
    settled = Settled(FULL, replicas=2)
    outcome = settled.decide(FULL, quotas=(quota(1),), own_requests={"nvidia.com/gpu": 2})
    assert not manifests(outcome, "Deployment", "shipfitter-scale") or all(
        m["spec"]["replicas"] == 2 for m in manifests(outcome, "Deployment", "shipfitter-scale")
    )
    assert condition(outcome, "Ready")["status"] == "True"


def test_smaller_than_one_replica_nothing_is_created_and_it_is_said():
    models = {f"hf://{LLAMA_70B}": facts(LLAMA_70B)}
    wish = mdl(model={"uri": f"hf://{LLAMA_70B}"})
    outcome = decide(wish, world(FULL, models=models, quotas=(quota(2),)))
    planned = condition(outcome, "Planned")
    assert planned["reason"] == "QuotaExceeded"
    assert "ResourceQuota team allows 2 nvidia.com/gpu and a replica takes" in planned["message"]
    assert not outcome.applies


def test_fewer_gpus_per_replica_are_taken_where_the_quota_allows_no_more():
    asks = {"workload": {"maxNumSeqs": {"min": 4, "preferred": 512}}}
    free = decide(mdl(**asks), world(FULL))
    tight = decide(mdl(**asks), world(FULL, quotas=(quota(1),)))
    assert free.status["plan"]["variants"][0]["gpusPerReplica"] > 1
    assert tight.status["plan"]["variants"][0]["gpusPerReplica"] == 1


def test_under_a_full_quota_no_pod_is_surged():
    settled = Settled(FULL, replicas=2)
    status = {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2}
    live = LiveWorkload(name=settled.variant, body={**settled.workload.body, "status": status})
    own = {"own_requests": {"nvidia.com/gpu": 2}}
    surges = [
        [m["spec"]["strategy"]["rollingUpdate"]["maxSurge"] for m in manifests(o, *SCALED)]
        for hard in (3, 2)
        for o in (settled.decide(FULL, workloads=(live,), quotas=(quota(hard),), **own),)
    ]
    assert surges == [[1], []], "it begins with none"


def test_claimed_devices_are_bounded_alike():
    by_claim = replace(
        FULL, resource_name="gpu.nvidia.com/NVIDIA-L40S", by_claim=True, from_slices=True
    )
    devices = GpuQuota(name="team", resource_name="gpu.nvidia.com/*", hard=2)
    wish = mdl(replicas=4, gpus={"allocation": "DRA"})
    outcome = decide(wish, world(by_claim, quotas=(devices,)))
    assert replicas(outcome) == 2
