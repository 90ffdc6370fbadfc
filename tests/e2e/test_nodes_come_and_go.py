"""Node types join and leave: what runs follows when it pays, and is never given up for nothing."""

import pytest

from e2e.stories import (
    AT_ONCE,
    L4,
    L40S,
    LLAMA_8B,
    flag,
    gpus_of,
    measured,
    model_deployment,
    says,
    serve,
    serving,
    stays,
    uids,
    variant,
)
from world.stage import is_ready

pytestmark = pytest.mark.plane


def moved_to(stage, name, node):
    """Everything that serves is on this node, and nothing else is left."""
    pods = stage.pods(name)
    return stage.ready(name) and {pod["spec"].get("nodeName") for pod in pods} == {node}


def watched(stage, name, until):
    """How many replicas served, at the least, while waiting for something."""
    least = [len(serving(stage, name))]

    def look():
        least.append(len(serving(stage, name)))
        return until()

    stage.eventually(look, what=f"{name} has moved")
    return min(least)


def test_a_larger_type_joins_and_takes_over_and_when_it_leaves_the_old_one_is_back(stage):
    stage.add_gpu_node("l4-1", L4, 1)
    serve(stage, "llama", LLAMA_8B, resize=AT_ONCE)
    small = variant(stage, "llama")
    stage.add_gpu_node("l40s-1", L40S, 1)
    least = watched(stage, "llama", lambda: moved_to(stage, "llama", "l40s-1"))
    large = variant(stage, "llama")
    assert least == 1, "nobody served for a moment"
    assert (small["maxModelLen"], large["maxModelLen"]) == (17_408, 131_072)
    assert flag(serving(stage, "llama")[0], "max-model-len") == "131072"
    stage.eventually(lambda: len(stage.objects("deployments")) == 1, what="the old one is gone")
    told = [e["message"] for e in stage.objects("events") if e["reason"] == "Resized"]
    assert any("max_model_len 17408 → 131072" in message for message in told)
    stage.remove_node("l40s-1")
    stage.eventually(lambda: moved_to(stage, "llama", "l4-1"), what="it serves on the L4")
    assert variant(stage, "llama")["maxModelLen"] == 17_408


def test_a_gain_is_taken_only_when_it_has_lasted_and_only_by_those_that_want_it(stage):
    stage.add_gpu_node("l4-1", L4, 3)
    wishes = {
        "patient": {"stabilizationSeconds": 3600},
        "asked": {"mode": "Recommend", **AT_ONCE},
        "left-alone": {"mode": "Off", **AT_ONCE},
    }
    for name, resize in wishes.items():
        stage.apply(model_deployment(name, LLAMA_8B, resize=resize))
    stage.eventually(lambda: all(map(stage.ready, wishes)), what="all three serve")
    before = uids(stage.objects("pods"))
    stage.add_gpu_node("l40s-1", L40S, 3)
    for name, reason in (("patient", "ResizePending"), ("asked", "ResizeRecommended")):
        drift = says(stage, name, "Drifted", reason)
        assert "max_model_len 17408 → 131072" in drift["message"]
    assert stays(lambda: uids(stage.objects("pods"))) == before
    assert stage.condition("patient", "Drifted")["reason"] == "ResizePending"
    assert stage.condition("left-alone", "Drifted")["status"] == "False"


def test_without_any_gpu_it_says_so_keeps_what_there_is_and_serves_again_when_they_return(stage):
    stage.add_gpu_node("l40s-1", L40S, 1)
    serve(stage, "llama", LLAMA_8B)
    pods, workload = uids(stage.pods("llama")), uids(stage.objects("deployments"))
    decided = stage.status("llama")["plan"]["decidedAt"]
    stage.emulator.cordon("l40s-1")  # the pool is gone for planning, and its pods run on
    says(stage, "llama", "Drifted", "PlanNoLongerFits")
    assert stays(lambda: uids(serving(stage, "llama"))) == pods
    assert stage.ready("llama"), "what runs still serves"
    stage.remove_node("l40s-1")
    assert says(stage, "llama", "CapacityKnown", "NoGpuCapacity")["status"] == "False"
    says(stage, "llama", "Ready", "NoGpuCapacity")
    assert uids(stage.objects("deployments")) == workload
    stage.add_gpu_node("l40s-2", L40S, 1)
    stage.eventually(lambda: moved_to(stage, "llama", "l40s-2"), what="it serves again")
    assert uids(stage.objects("deployments")) == workload
    assert stage.status("llama")["plan"]["decidedAt"] == decided
    says(stage, "llama", "Drifted", "PlanHolds")


def test_with_no_gpu_to_spare_a_change_replaces_one_replica_after_the_other(stage):
    stage.add_gpu_node("l40s-1", L40S, 2)
    serve(stage, "llama", LLAMA_8B, replicas=2)
    before = uids(stage.pods("llama"))
    stage.change("llama", {"workload": {"maxNumSeqs": {"preferred": 32}}})

    def replaced():
        pods = serving(stage, "llama")
        return len(pods) == 2 and all(flag(pod, "max-num-seqs") == "32" for pod in pods)

    assert watched(stage, "llama", replaced) == 1, "one of two should serve all the time"
    assert not uids(serving(stage, "llama")) & before
    assert len(stage.objects("deployments")) == 1, "the same variant: a rolling update inside it"
    stage.eventually(lambda: stage.ready("llama"))


def test_with_no_gpu_to_spare_another_layout_on_the_same_node_takes_over(stage):
    stage.add_gpu_node("l40s-1", L40S, 2)
    serve(stage, "llama", LLAMA_8B, replicas=2)
    stage.change("llama", {"replicas": 1, "gpus": {"tensorParallelSize": 2}})

    def replaced():
        pods = stage.pods("llama")
        return len(pods) == 1 and is_ready(pods[0]) and gpus_of(pods[0]) == 2

    stage.eventually(replaced, what="one replica over both GPUs serves")
    stage.eventually(lambda: stage.ready("llama") and len(stage.objects("deployments")) == 1)


SLOW = {"start_delay_seconds": 1.0}  # an engine that takes its time shows every gap


def test_with_gpus_to_spare_another_layout_takes_over_without_a_gap(stage):
    stage.add_gpu_node("l40s-1", L40S, 3, engine=SLOW)
    serve(stage, "llama", LLAMA_8B)
    stage.change("llama", {"gpus": {"tensorParallelSize": 2}})

    def replaced():
        return [gpus_of(pod) for pod in stage.pods("llama")] == [2] and stage.ready("llama")

    assert watched(stage, "llama", replaced) == 1, "nobody served for a moment"


def test_another_wish_in_the_middle_of_a_move_is_where_it_ends(stage):
    stage.add_gpu_node("l4-1", L4, 1)
    serve(stage, "llama", LLAMA_8B, resize=AT_ONCE)
    stage.add_gpu_node("l40s-1", L40S, 1, engine=SLOW)
    stage.eventually(lambda: len(stage.pods("llama")) == 2, what="the move has begun")
    stage.change("llama", {"gpus": {"products": [L4]}})

    def stayed():
        return moved_to(stage, "llama", "l4-1") and len(stage.objects("deployments")) == 1

    least = watched(stage, "llama", stayed)
    assert least == 1, "nobody served for a moment"
    assert variant(stage, "llama")["gpuProduct"] == L4


def test_a_node_that_dies_is_left_behind(stage):
    stage.add_gpu_node("l4-1", L4, 1)
    stage.add_gpu_node("l40s-1", L40S, 1)
    measured(stage, "l4-1", "l40s-1")
    serve(stage, "llama", LLAMA_8B)
    assert moved_to(stage, "llama", "l40s-1")
    stage.emulator.silence("l40s-1", power_off=True)
    stage.eventually(
        lambda: [pod["spec"]["nodeName"] for pod in serving(stage, "llama")] == ["l4-1"],
        what="it serves on the L4",
    )
