"""Several deployments and one set of GPUs: nobody counts on a GPU that another one holds."""

import pytest

from e2e.stories import (
    AT_ONCE,
    L4,
    L40S,
    LLAMA_8B,
    model_deployment,
    says,
    serve,
    serving,
)

pytestmark = pytest.mark.plane
NAMES = ("one", "two")


def test_two_at_once_for_one_gpu_one_serves_and_the_other_waits_and_says_so(stage):
    stage.add_gpu_node("l4-1", L4, 1)
    wishes = [model_deployment(name, LLAMA_8B) for name in NAMES]
    stage.apply({"apiVersion": "v1", "kind": "List", "items": wishes})
    first = stage.eventually(
        lambda: next(filter(stage.ready, NAMES), None), what="one of them serves"
    )
    (second,) = set(NAMES) - {first}
    told = says(stage, second, "Ready", "WaitingForGpu")
    assert told["status"] == "False"
    assert L4 in told["message"]
    assert serving(stage, second) == []
    assert stage.ready(first)
    stage.delete("modeldeployment", first)
    stage.eventually(lambda: stage.ready(second), what="the other one gets the GPU")


def test_two_at_once_take_one_gpu_type_each_when_neither_holds_both(stage):
    """Both would rather have the L40S; only one can, and the other must not wait for it."""
    stage.add_gpu_node("l40s-1", L40S, 1)
    stage.add_gpu_node("l4-1", L4, 1)
    wishes = [model_deployment(name, LLAMA_8B) for name in NAMES]
    stage.apply({"apiVersion": "v1", "kind": "List", "items": wishes})
    stage.eventually(lambda: all(map(stage.ready, NAMES)), what="both serve")
    nodes = sorted(pod["spec"]["nodeName"] for name in NAMES for pod in stage.pods(name))
    assert nodes == ["l4-1", "l40s-1"]


def test_gpus_that_other_pods_hold_are_not_counted(stage):
    stage.add_gpu_node("l40s-1", L40S, 1)
    stage.add_gpu_node("l4-1", L4, 1)
    stage.apply(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "training"},
            "spec": {
                "nodeSelector": {"kubernetes.io/hostname": "l40s-1"},
                "terminationGracePeriodSeconds": 1,
                "containers": [
                    {
                        "name": "training",
                        "image": "busybox",
                        "command": ["sleep", "3600"],
                        "resources": {"limits": {"nvidia.com/gpu": "1"}},
                    }
                ],
            },
        }
    )
    stage.eventually(
        lambda: stage.get("pod", "training")["spec"].get("nodeName"), what="it holds the L40S"
    )
    # Pods of others are listed every 10 s: a plan made before that waits, and then moves.
    serve(stage, "llama", LLAMA_8B, resize=AT_ONCE)
    assert serving(stage, "llama")[0]["spec"]["nodeName"] == "l4-1"


def test_taking_a_replica_away_frees_a_whole_node(stage):
    """Left to itself, Kubernetes takes one of the two that share a node."""
    stage.add_gpu_node("l4-1", L4, 2)
    stage.add_gpu_node("l4-2", L4, 2)
    serve(stage, "many", LLAMA_8B, replicas=3)
    stage.plane.kubectl("scale", "mdl", "many", "--replicas=2")
    where = stage.eventually(
        lambda: (
            len(pods := serving(stage, "many")) == 2 and {pod["spec"]["nodeName"] for pod in pods}
        ),
        what="two serve",
    )
    assert len(where) == 1, "the other node is free"
