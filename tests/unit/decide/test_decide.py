"""Stories of one decision, through the whole pure line."""

import json
from dataclasses import replace

import pytest

from builders_decide import NOW, Settled, as_live, condition, manifests, mdl, serving, world
from builders_plan import LLAMA_8B, facts, node
from shipfitter.decide import LiveWorkload, decide
from shipfitter.errors import HubUnavailableError, TokenRequiredError, UnknownArchitectureError

SOON = {"resize": {"stabilizationSeconds": 60}}


def variant(outcome):
    return outcome.status["plan"]["variants"][0]


def test_a_first_plan_writes_the_workload_whole():
    outcome = decide(mdl(), world(node("a", "L40S", 8)))
    (deployment,) = manifests(outcome, "Deployment")
    assert deployment["spec"]["replicas"] == 1
    assert condition(outcome, "Planned")["reason"] == "Fits"
    assert condition(outcome, "Ready")["status"] == "False"
    kinds = {apply.manifest["kind"] for apply in outcome.applies}
    assert kinds == {"ConfigMap", "Service", "Deployment"}


def test_deciding_again_on_an_unchanged_world_changes_nothing():
    nodes = (node("a", "L40S", 8),)
    settled = Settled(*nodes)
    again = settled.decide(*nodes)
    assert again.status == settled.status
    assert not manifests(again, "Deployment")
    assert not again.notices
    assert not again.deletes


def test_a_plan_outlives_a_lost_status():
    nodes = (node("a", "L40S", 8),)
    settled = Settled(*nodes)
    again = decide(mdl(), settled.world(*nodes, now_seconds=NOW + 500))
    assert again.status["plan"] == settled.status["plan"]
    assert again.status["engine"] == settled.status["engine"]
    assert not manifests(again, "Deployment")


def test_a_better_gpu_type_is_taken_when_the_gain_has_lasted():
    small = node("a", "L4")
    both = (small, node("b", "L40S"))
    settled = Settled(small, **SOON)
    early = settled.decide(*both)
    assert condition(early, "Drifted")["reason"] == "ResizePending"
    assert early.requeue_after_seconds == 60
    late = settled.after(61, *both)
    assert variant(late)["gpuProduct"] == "NVIDIA-L40S"
    assert len(manifests(late, "Deployment")) == 1
    assert late.notices[0].reason == "Resized"
    assert "max_model_len 17408 → 131072" in late.notices[0].message


def test_the_old_variant_stays_until_the_new_one_is_ready():
    small = node("a", "L4")
    both = (small, node("b", "L40S"))
    settled = Settled(small, **SOON)
    late = settled.after(61, *both)
    settled.status = late.status
    (deployment,) = manifests(late, "Deployment")
    name = deployment["metadata"]["name"]
    fresh = as_live(deployment)
    starting = serving(name, "b", ready=False)
    waiting = settled.decide(
        *both, workloads=(settled.workload, fresh), pods=(*settled.pods, starting)
    )
    assert not [
        m
        for m in manifests(waiting, "Deployment", "shipfitter-scale")
        if m["spec"]["replicas"] == 0
    ]
    there = settled.decide(
        *both, workloads=(settled.workload, fresh), pods=(*settled.pods, serving(name, "b"))
    )
    scaled = {
        m["metadata"]["name"]: m["spec"]["replicas"]
        for m in manifests(there, "Deployment", "shipfitter-scale")
    }
    assert scaled[settled.variant] == 0


def test_an_old_variant_without_wish_or_pods_is_deleted():
    small, big = node("a", "L4"), node("b", "L40S")
    settled = Settled(small, **SOON)
    late = settled.after(61, small, big)
    settled.status = late.status
    (deployment,) = manifests(late, "Deployment")
    name = deployment["metadata"]["name"]
    gone = as_live(
        {**settled.workload.body, "spec": {**settled.workload.body["spec"], "replicas": 0}}
    )
    gone.body["spec"]["replicas"] = 0
    done = settled.decide(
        small, big, workloads=(gone, as_live(deployment)), pods=(serving(name, "b"),)
    )
    assert [delete.name for delete in done.deletes] == [settled.variant]


def scale(outcome, name):
    """(replicas, surge) a variant is scaled to; none where that stays as it is."""
    found = [
        m["spec"]
        for m in manifests(outcome, "Deployment", "shipfitter-scale")
        if m["metadata"]["name"] == name
    ]
    return [(s["replicas"], s["strategy"]["rollingUpdate"]["maxSurge"]) for s in found]


def test_a_surge_pod_that_took_the_last_gpu_is_no_reason_to_end_the_one_that_serves():
    settled = Settled(node("a", "L40S", 2))
    surging = serving(settled.variant, "a", number=1, ready=False)
    rolling = settled.decide(node("a", "L40S", 2, used_gpus=2), pods=(*settled.pods, surging))
    assert scale(rolling, settled.variant) == [(1, 1)]


def test_a_new_variant_that_took_the_last_gpus_is_no_reason_to_end_the_old_one():
    settled = Settled(node("a", "L40S", 3))
    wider = settled.decide(node("a", "L40S", 3), spec={"gpus": {"tensorParallelSize": 2}})
    settled.status = wider.status
    (whole,) = manifests(wider, "Deployment")
    name = whole["metadata"]["name"]
    waiting = settled.decide(
        node("a", "L40S", 3, used_gpus=3),
        spec={"gpus": {"tensorParallelSize": 2}},
        workloads=(settled.workload, as_live(whole)),
        pods=(*settled.pods, serving(name, "a", gpus=2, ready=False)),
    )
    assert 0 not in [replicas for replicas, _ in scale(waiting, settled.variant)]


def test_pods_that_fail_behind_those_that_serve_are_told():
    settled = Settled(node("a", "L40S", 2))
    words = "vllm: error: unrecognized arguments: --no-such-flag"
    crashed = serving(
        settled.variant,
        "a",
        number=1,
        ready=False,
        waiting_reason="CrashLoopBackOff",
        termination_message=words,
        exit_code=2,
    )
    status = {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 1}
    half = LiveWorkload(name=settled.variant, body={**settled.workload.body, "status": status})
    outcome = settled.decide(
        node("a", "L40S", 2),
        workloads=(half,),
        pods=(*settled.pods, crashed),
    )
    assert condition(outcome, "Ready")["status"] == "True"
    told = condition(outcome, "Reconciling")
    assert (told["status"], told["reason"]) == ("True", "EngineFailed")
    assert "--no-such-flag" in told["message"]
    assert [n.reason for n in outcome.notices if n.type == "Warning"] == ["EngineFailed"]


def unplaced(settled):
    """Its pods as the scheduler left them."""
    return tuple(
        replace(pod, ready=False, phase="Pending", node="", gpus=0, waiting_for_gpu_since=NOW)
        for pod in settled.pods
    )


def test_pods_that_find_no_gpu_go_to_a_smaller_type_that_is_free():
    taken, small = node("a", "L40S", used_gpus=1), node("b", "L4")
    settled = Settled(node("a", "L40S"), **SOON)
    late = settled.after(61, taken, small, pods=unplaced(settled))
    assert variant(late)["gpuProduct"] == "NVIDIA-L4"
    assert "wait for GPUs that others hold" in late.notices[0].message


def test_pods_that_find_no_gpu_wait_where_nothing_else_is_free():
    taken, small = node("a", "L40S", used_gpus=1), node("b", "L4", used_gpus=1)
    settled = Settled(node("a", "L40S"), **SOON)
    late = settled.after(61, taken, small, pods=unplaced(settled))
    assert variant(late)["gpuProduct"] == "NVIDIA-L40S"
    assert condition(late, "Ready")["reason"] == "WaitingForGpu"


def test_one_replica_that_waits_is_no_reason_to_move_the_one_that_serves():
    taken, small = node("a", "L40S", 2, used_gpus=2), node("b", "L4", 2)
    settled = Settled(node("a", "L40S", 2), replicas=2, **SOON)
    pods = (settled.pods[0], unplaced(settled)[1])
    late = settled.after(61, taken, small, pods=pods)
    assert variant(late)["gpuProduct"] == "NVIDIA-L40S"


@pytest.mark.parametrize(
    ("mode", "want"),
    [
        pytest.param("Recommend", "ResizeRecommended", id="Recommend says what would be gained"),
        pytest.param("Off", "PlanHolds", id="Off says nothing"),
    ],
)
def test_a_gain_changes_nothing_unless_resizing_is_automatic(mode, want):
    small = node("a", "L4")
    settled = Settled(small, resize={"mode": mode, "stabilizationSeconds": 0})
    late = settled.after(1000, small, node("b", "L40S"))
    assert condition(late, "Drifted")["reason"] == want
    assert variant(late)["gpuProduct"] == "NVIDIA-L4"


def test_a_gain_whose_gpus_are_taken_is_no_gain():
    small = node("a", "L4")
    settled = Settled(small, **SOON)
    late = settled.after(61, small, node("b", "L40S", used_gpus=1))
    assert variant(late)["gpuProduct"] == "NVIDIA-L4"


def test_when_the_pool_is_gone_and_nothing_else_fits_what_runs_is_kept():
    small = node("a", "L4")
    settled = Settled(small)
    late = settled.after(1000)
    assert condition(late, "Planned")["reason"] == "NoGpuCapacity"
    assert "running pods are kept" in condition(late, "Planned")["message"]
    assert late.status["plan"] == settled.status["plan"]
    assert not late.deletes


def test_when_the_pool_is_gone_another_one_is_taken_after_settling():
    settled = Settled(node("a", "L4"))
    other = node("b", "L40S")
    early = settled.decide(other)
    assert condition(early, "Drifted")["reason"] == "PlanNoLongerFits"
    late = settled.after(11, other)
    assert variant(late)["gpuProduct"] == "NVIDIA-L40S"


def test_a_bad_spec_lists_every_problem_and_touches_nothing():
    nodes = (node("a", "L40S"),)
    settled = Settled(*nodes)
    bad = {
        "engine": {"args": ["--port=1", "--model=x"]},
        "template": {"spec": {"hostNetwork": True}},
    }
    outcome = settled.decide(*nodes, spec=bad)
    message = condition(outcome, "Planned")["message"]
    assert condition(outcome, "Planned")["reason"] == "InvalidSpec"
    for path in ("spec.engine.args", "spec.template", "--port", "--model"):
        assert path in message
    assert not outcome.applies
    assert not outcome.deletes
    assert outcome.status["plan"] == settled.status["plan"]


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(HubUnavailableError("spec.model.uri: the hub is away"), id="the hub is down"),
        pytest.param(TokenRequiredError("spec.model.uri: gated"), id="the model is gated"),
        pytest.param(UnknownArchitectureError("WarpForCausalLM"), id="the class is not known"),
    ],
)
def test_a_model_that_cannot_be_read_is_named(error):
    outcome = decide(mdl(), world(node("a", "L40S"), models={f"hf://{LLAMA_8B}": error}))
    assert condition(outcome, "ModelResolved")["reason"] == error.reason
    assert condition(outcome, "Ready")["reason"] == error.reason
    assert not outcome.applies


def test_nothing_fits_creates_nothing():
    outcome = decide(
        mdl(model={"uri": "Qwen/Qwen3-235B-A22B"}),
        world(node("a", "L4"), models={"hf://Qwen/Qwen3-235B-A22B": facts("Qwen/Qwen3-235B-A22B")}),
    )
    assert condition(outcome, "Planned")["reason"] == "DoesNotFit"
    assert not outcome.applies
    assert condition(outcome, "Stalled")["status"] == "True"


def test_more_replicas_only_scale():
    nodes = (node("a", "L40S", 8),)
    settled = Settled(*nodes)
    more = settled.decide(*nodes, spec={"replicas": 3})
    assert not manifests(more, "Deployment")
    (scale,) = manifests(more, "Deployment", "shipfitter-scale")
    assert scale["spec"]["replicas"] == 3
    (budget,) = manifests(more, "PodDisruptionBudget")
    assert budget["spec"]["minAvailable"] == 2


@pytest.mark.parametrize(
    ("replicas", "ready", "waiting", "want"),
    [
        pytest.param(3, 3, 0, 2, id="all serve: one may be away"),
        pytest.param(3, 2, 1, 1, id="what finds no GPU cannot be kept, and blocks no drain"),
        pytest.param(3, 1, 2, 1, id="the last that serves is kept"),
        pytest.param(3, 3, 1, 2, id="a surge that waits lets no more go"),
        pytest.param(3, 2, 0, 2, id="one that starts is not given up"),
    ],
)
def test_how_many_replicas_a_drain_must_leave(replicas, ready, waiting, want):
    nodes = (node("a", "L40S", 8),)
    settled = Settled(*nodes, replicas=replicas)
    pods = [serving(settled.variant, "a", number=n) for n in range(ready)]
    for n in range(waiting):
        wait = {"ready": False, "gpus": 0, "waiting_for_gpu_since": NOW}
        pods.append(serving(settled.variant, "", number=10 + n, **wait))
    outcome = settled.decide(*nodes, pods=tuple(pods))
    (budget,) = manifests(outcome, "PodDisruptionBudget")
    assert budget["spec"]["minAvailable"] == want


def test_a_disruption_budget_goes_with_the_second_replica():
    nodes = (node("a", "L40S", 8),)
    settled = Settled(*nodes)
    fewer = settled.decide(*nodes, disruption_budget_uid="budget-uid")
    assert [(d.kind, d.uid) for d in fewer.deletes] == [("PodDisruptionBudget", "budget-uid")]


def test_a_claim_for_one_node_replaces_pods_in_place():
    spec = {"storage": {"cacheClaim": "cache"}}
    outcome = decide(
        mdl(**spec), world(node("a", "L40S", 8), claim_access_modes=("ReadWriteOnce",))
    )
    (deployment,) = manifests(outcome, "Deployment")
    rolling = deployment["spec"]["strategy"]["rollingUpdate"]
    assert rolling == {"maxSurge": 0, "maxUnavailable": 1}
    assert "podAffinity" in deployment["spec"]["template"]["spec"]["affinity"]


def test_a_claim_for_one_pod_refuses_a_second_replica():
    spec = {"storage": {"cacheClaim": "cache"}, "replicas": 2}
    modes = ("ReadWriteOncePod",)
    outcome = decide(mdl(**spec), world(node("a", "L40S", 8), claim_access_modes=modes))
    assert condition(outcome, "Planned")["reason"] == "InvalidSpec"
    assert "spec.replicas" in condition(outcome, "Planned")["message"]


def test_a_surge_needs_a_free_gpu():
    free = Settled(node("a", "L40S", 2))
    full = Settled(node("a", "L40S", 1))
    roomy = free.decide(node("a", "L40S", 2, used_gpus=1))
    tight = full.decide(node("a", "L40S", 1, used_gpus=1))
    (scale,) = manifests(roomy, "Deployment", "shipfitter-scale")
    assert scale["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    assert not manifests(tight, "Deployment", "shipfitter-scale")  # it is one by one already


def test_a_newer_default_image_only_recommends_itself():
    nodes = (node("a", "L40S"),)
    settled = Settled(*nodes)
    newer = settled.world(*nodes)
    newer = world(
        *nodes,
        workloads=newer.workloads,
        pods=newer.pods,
        settings=type(newer.settings)(default_image="vllm/vllm-openai:v0.34.0"),
    )
    outcome = decide(mdl(status=settled.status), newer)
    assert condition(outcome, "Drifted")["reason"] == "EngineUpdateAvailable"
    assert not manifests(outcome, "Deployment")
    assert outcome.status["engine"]["image"].endswith(":v0.33.0")


def test_pods_that_wait_for_a_gpu_are_named_without_counts_that_change():
    nodes = (node("a", "L40S", 1),)
    settled = Settled(*nodes, replicas=2)
    pods = (
        settled.pods[0],
        serving(
            settled.variant,
            "",
            number=1,
            ready=False,
            phase="Pending",
            gpus=0,
            waiting_for_gpu_since=NOW - 5,
        ),
    )
    outcome = settled.decide(*nodes, pods=pods)
    assert condition(outcome, "Available")["reason"] == "WaitingForGpu"
    assert "1 × NVIDIA-L40S" in condition(outcome, "Available")["message"]


def test_last_words_of_an_engine_reach_the_condition():
    nodes = (node("a", "L40S", 1),)
    settled = Settled(*nodes)
    pod = serving(
        settled.variant,
        "a",
        ready=False,
        restarts=2,
        waiting_reason="CrashLoopBackOff",
        exit_code=1,
        termination_message="no room for the cache",
    )
    outcome = settled.decide(*nodes, pods=(pod,))
    assert condition(outcome, "Available")["reason"] == "EngineFailed"
    assert "no room for the cache" in condition(outcome, "Available")["message"]


def test_the_record_on_the_workload_is_the_plan_in_status():
    outcome = decide(mdl(), world(node("a", "L40S", 8)))
    (deployment,) = manifests(outcome, "Deployment")
    record = json.loads(deployment["metadata"]["annotations"]["shipfitter.dev/plan"])
    assert {key: record[key] for key in outcome.status["plan"]} == outcome.status["plan"]
