"""One pool is too small for all replicas: others take the rest, behind the same Service."""

import json

import pytest

from e2e.stories import (
    A100,
    AT_ONCE,
    L40S,
    LLAMA_8B,
    at_rest,
    call,
    flag,
    measured,
    model_deployment,
    serve,
    serving,
    uids,
)

pytestmark = pytest.mark.plane
SCALE = "/apis/shipfitter.dev/v1alpha1/namespaces/default/modeldeployments/llama/scale"


@pytest.fixture
def two_pools(stage):
    """Two L40S and two A100: neither holds three replicas."""
    stage.add_gpu_node("l40s-1", L40S, 2)
    stage.add_gpu_node("a100-1", A100, 2)
    measured(stage, "l40s-1", "a100-1")
    return stage


def by_node(stage):
    """How many replicas serve on each node."""
    nodes = [pod["spec"]["nodeName"] for pod in serving(stage, "llama")]
    return {node: nodes.count(node) for node in sorted(set(nodes))}


def served_by(stage, want):
    """Wait for these replicas on these nodes, and nothing else."""
    stage.eventually(lambda: by_node(stage) == want and stage.ready("llama"), what=f"{want} serve")


def scaled(stage, replicas):
    """What an autoscaler does: the scale subresource and nothing else."""
    stage.api.patch(SCALE, {"spec": {"replicas": replicas}})


def test_three_replicas_over_two_pools_scale_as_one_and_nobody_moves(two_pools):
    stage = two_pools
    serve(stage, "llama", LLAMA_8B, replicas=3)
    assert by_node(stage) == {"a100-1": 1, "l40s-1": 2}
    pods = serving(stage, "llama")
    assert {flag(pod, "max-model-len") for pod in pods} == {"131072"}
    assert len({flag(pod, "max-num-seqs") for pod in pods}) == 2, "each with its own arguments"
    owned = stage.objects("services", selector="shipfitter.dev/modeldeployment=llama")
    assert len(owned) == 1, "one Service for all"
    slices = stage.api.get("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices")
    mine = [s for s in slices["items"] if s["metadata"]["name"].startswith("llama-")]
    assert sum(e["conditions"]["ready"] for s in mine for e in s["endpoints"]) == 3
    url = "http://llama.default.svc:8000/v1/models"
    assert json.loads(call(stage, url))["data"][0]["id"] == "meta-llama/Llama-3.1-8B-Instruct"
    status = stage.status("llama")
    assert [v["replicas"] for v in status["plan"]["variants"]] == [2, 1]
    stage.eventually(
        lambda: len(stage.status("llama").get("observed") or ()) == 2,
        what="each variant is compared with its own engines",
    )
    shown = stage.plane.kubectl("get", "mdl", "llama")
    assert "NVIDIA-L40S +1" in shown
    assert max(map(len, shown.splitlines())) <= 110
    before = uids(pods)

    scaled(stage, 4)
    served_by(stage, {"a100-1": 2, "l40s-1": 2})
    assert before < uids(stage.pods("llama"))
    scale = stage.api.get(SCALE)
    assert scale["status"]["replicas"] == 4
    assert len(stage.objects("pods", selector=scale["status"]["selector"])) == 4

    scaled(stage, 2)
    served_by(stage, {"l40s-1": 2})
    stage.eventually(lambda: len(stage.objects("deployments")) == 1, what="one variant is left")
    assert uids(stage.pods("llama")) < before
    on_l40s = uids(stage.pods("llama"))

    scaled(stage, 3)
    served_by(stage, {"a100-1": 1, "l40s-1": 2})
    assert on_l40s < uids(stage.pods("llama"))
    kept = uids(stage.pods("llama"))
    still = at_rest(stage, "llama")
    stage.kill_operator()
    stage.eventually(stage.operator_ready, what="another operator is ready")
    assert at_rest(stage, "llama") == still
    assert uids(stage.pods("llama")) == kept


def test_a_pool_that_goes_leaves_its_replicas_to_the_other_and_back_again(two_pools):
    stage = two_pools
    serve(stage, "llama", LLAMA_8B, replicas=3, resize=AT_ONCE)
    stays = {pod["metadata"]["uid"] for pod in serving(stage, "llama")
             if pod["spec"]["nodeName"] == "a100-1"}  # fmt: skip
    stage.remove_node("l40s-1")
    stage.eventually(
        lambda: by_node(stage) == {"a100-1": 2}, what="what the other pool holds serves there"
    )
    assert stays < uids(stage.pods("llama"))
    told = stage.eventually(
        lambda: (c := stage.condition("llama", "Available"))["reason"] == "WaitingForGpu" and c,
        what="the third waits",
    )
    assert told["message"].startswith("2 of 3 replicas serve; 1 pod waits for 1 × ")
    stage.add_gpu_node("l40s-2", L40S, 2)
    stage.eventually(lambda: stage.ready("llama"), what="all three serve")
    assert by_node(stage) == {"a100-1": 2, "l40s-2": 1}


def test_a_deployment_that_fills_up_goes_on_where_there_is_room(two_pools):
    """The first deployment takes the last GPU of the preferred type; the second is spread."""
    stage = two_pools
    serve(stage, "first", LLAMA_8B)
    stage.apply(model_deployment("llama", LLAMA_8B, replicas=3))
    served_by(stage, {"a100-1": 2, "l40s-1": 1})
