"""The operator dies, restarts, is away and is upgraded: what runs does not notice."""

import json

import pytest

from e2e.stories import (
    L4,
    L40S,
    LLAMA_8B,
    flag,
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
NEXT_IMAGE = "vllm/vllm-openai:v0.33.1"


@pytest.fixture
def gpus(stage):
    """Three L40S: room for two replicas and one more."""
    stage.add_gpu_node("l40s-1", L40S, 3)
    measured(stage, "l40s-1")
    return stage


def template_of(stage, name):
    """What decides whether pods roll, of every workload of a deployment."""
    workloads = stage.objects("deployments", selector=f"shipfitter.dev/modeldeployment={name}")
    return {
        each["metadata"]["uid"]: json.dumps(each["spec"]["template"], sort_keys=True)
        for each in workloads
    }


def test_killed_in_the_middle_of_a_rollout_it_ends_as_if_nothing_had_happened(gpus):
    serve(gpus, "llama", LLAMA_8B, replicas=2)
    seen = uids(gpus.pods("llama"))
    before = set(seen)
    gpus.change("llama", {"workload": {"maxNumSeqs": {"preferred": 32}}})
    gpus.eventually(lambda: len(gpus.objects("replicasets")) == 2, what="the rollout began")
    gpus.kill_operator()

    def rolled_out():
        seen.update(uids(gpus.pods("llama")))
        pods = gpus.pods("llama")
        return len(pods) == 2 and all(is_ready(p) and flag(p, "max-num-seqs") == "32" for p in pods)

    gpus.eventually(rolled_out, what="two new replicas serve")
    gpus.eventually(gpus.operator_ready, what="the operator is back")
    gpus.eventually(lambda: gpus.ready("llama"))
    after = uids(serving(gpus, "llama"))
    assert stays(lambda: uids(gpus.pods("llama"))) == after
    assert seen == before | after, "some pods were started twice"
    assert len(gpus.objects("replicasets")) == 2, "it rolled more than once"
    assert variant(gpus, "llama")["maxNumSeqs"] == 32


def test_killed_in_the_middle_of_a_move_it_ends_as_if_nothing_had_happened(stage):
    stage.add_gpu_node("l4-1", L4, 1)
    serve(stage, "llama", LLAMA_8B, resize={"stabilizationSeconds": 0})
    (small,) = uids(stage.pods("llama"))
    stage.add_gpu_node("l40s-1", L40S, 1, engine={"start_delay_seconds": 3})
    stage.eventually(lambda: len(stage.pods("llama")) == 2, what="the move has begun")
    seen = uids(stage.pods("llama"))
    stage.kill_operator()

    def moved():
        seen.update(uids(stage.pods("llama")))
        return len(stage.objects("deployments")) == len(stage.pods("llama")) == 1

    stage.eventually(moved, what="only the larger one is left")
    stage.eventually(lambda: stage.ready("llama"))
    assert variant(stage, "llama")["gpuProduct"] == L40S
    assert seen == {small} | uids(stage.pods("llama")), "some pods were started twice"


def test_killed_right_after_apply_it_makes_everything_once(gpus):
    gpus.apply(model_deployment("llama", LLAMA_8B))
    gpus.kill_operator()
    gpus.eventually(lambda: gpus.ready("llama"), what="it serves all the same")
    assert len(gpus.objects("deployments")) == 1
    assert len(gpus.objects("replicasets")) == 1
    assert len(gpus.pods("llama")) == 1


def test_while_nobody_operates_one_is_deleted_and_another_loses_its_status(gpus):
    """The first is gone without us; the other is rebuilt, and nothing is decided anew."""
    for name, replicas in (("goes", 2), ("stays", 1)):
        gpus.apply(model_deployment(name, LLAMA_8B, replicas=replicas))
    gpus.eventually(lambda: gpus.ready("goes") and gpus.ready("stays"), what="both serve")
    goes = "shipfitter.dev/modeldeployment=goes"
    kinds = ("deployments", "services", "configmaps", "poddisruptionbudgets", "pods")
    assert all(gpus.objects(kind, selector=goes) for kind in kinds)
    status, pods = gpus.status("stays"), uids(gpus.pods("stays"))
    templates = template_of(gpus, "stays")
    with gpus.operator_away():
        gpus.plane.kubectl("delete", "mdl", "goes", "--timeout=20s")
        patch = ("patch", "mdl", "stays", "--subresource=status", "--type=merge", "-p")
        gpus.plane.kubectl(*patch, '{"status": null}')
        assert gpus.status("stays") == {}
        gpus.eventually(
            lambda: not any(gpus.objects(kind, selector=goes) for kind in kinds),
            what="the garbage collector has taken everything away",
        )
    gpus.eventually(lambda: gpus.status("stays").get("plan"), what="the status is back")
    assert gpus.status("stays")["plan"] == status["plan"]
    assert gpus.status("stays")["engine"] == status["engine"]
    assert stays(lambda: uids(gpus.pods("stays"))) == pods
    assert template_of(gpus, "stays") == templates


def test_a_newer_default_engine_rolls_nothing_and_is_only_recommended(gpus):
    serve(gpus, "llama", LLAMA_8B)
    pods, templates = uids(gpus.pods("llama")), template_of(gpus, "llama")
    old = (
        gpus.chart_values().get("engine", {}).get("image")
        or gpus.status("llama")["engine"]["image"]
    )
    try:
        gpus.upgrade({"engine": {"image": NEXT_IMAGE}})
        told = says(gpus, "llama", "Drifted", "EngineUpdateAvailable")
        assert NEXT_IMAGE in told["message"]
        assert "spec.engine.image" in told["message"]
        assert stays(lambda: uids(gpus.pods("llama"))) == pods
        assert template_of(gpus, "llama") == templates
        assert gpus.status("llama")["engine"]["image"] == old
        gpus.change("llama", {"engine": {"image": NEXT_IMAGE}})
        gpus.eventually(
            lambda: (
                [p["spec"]["containers"][0]["image"] for p in serving(gpus, "llama")]
                == [NEXT_IMAGE]
            ),
            what="the wish for the newer engine is granted",
        )
    finally:
        gpus.upgrade({"engine": {"image": old}})


def test_another_number_of_replicas_only_scales(gpus):
    serve(gpus, "llama", LLAMA_8B)
    first, templates = uids(gpus.pods("llama")), template_of(gpus, "llama")
    decided = gpus.status("llama")["plan"]["decidedAt"]
    gpus.plane.kubectl("scale", "mdl", "llama", "--replicas=2")
    gpus.eventually(lambda: len(serving(gpus, "llama")) == 2 and gpus.ready("llama"))
    assert first < uids(serving(gpus, "llama")), "the first replica was replaced"
    assert template_of(gpus, "llama") == templates
    assert gpus.status("llama")["plan"]["decidedAt"] == decided
    gpus.plane.kubectl("scale", "mdl", "llama", "--replicas=0")
    gpus.eventually(lambda: not gpus.pods("llama"), what="no replica is left")
    assert says(gpus, "llama", "Available", "ScaledToZero")["status"] == "False"
    gpus.plane.kubectl("scale", "mdl", "llama", "--replicas=1")
    gpus.eventually(lambda: gpus.ready("llama"), what="it is back from zero")
    assert template_of(gpus, "llama") == templates
