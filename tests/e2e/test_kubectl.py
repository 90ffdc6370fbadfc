"""What a person or an autoscaler sees and does with kubectl."""

import pytest

from e2e.stories import L4, L40S, LLAMA_8B, measured, model_deployment, says, serve

pytestmark = pytest.mark.plane


def table(text):
    """Rows of `kubectl get` by name, each a mapping from column to text."""
    head, *rows = text.splitlines()
    names = head.split()
    starts = [head.index(f" {name}" if index else name) for index, name in enumerate(names)]
    ends = [*starts[1:], None]
    cells = [[row[a:b].strip() for a, b in zip(starts, ends, strict=True)] for row in rows]
    return {each[0]: dict(zip(names, each, strict=True)) for each in cells}


def told_once(stage, name):
    """Each transition made one event, and none of them sounds bad."""
    uid = stage.get("modeldeployment", name)["metadata"]["uid"]
    mine = [e for e in stage.objects("events") if e["involvedObject"].get("uid") == uid]
    reasons = sorted(event["reason"] for event in mine)
    assert reasons == sorted(set(reasons)), "a transition was told twice"
    assert {"Resolved", "Fits", "Available"} <= set(reasons)
    assert {event["type"] for event in mine} == {"Normal"}


def test_columns_and_events_tell_what_runs_and_what_does_not(stage):
    stage.add_gpu_node("l4-1", L4, 1)
    measured(stage, "l4-1")
    serve(stage, "llama-8b", LLAMA_8B)
    stage.apply(model_deployment("too-big", "hf://meta-llama/Llama-3.3-70B-Instruct"))
    says(stage, "too-big", "Ready", "DoesNotFit")
    rows = table(stage.plane.kubectl("get", "mdl"))
    ages = [row.pop("AGE") for row in rows.values()]
    assert all(ages)
    assert rows["llama-8b"] == {
        "NAME": "llama-8b",
        "MODEL": "Llama-3.1-8B-Instruct",
        "GPU": L4,
        "GPUS": "1",
        "TP": "1",
        "CONTEXT": "17408",
        "SEQS": "16",
        "READY": "1/1",
        "REASON": "Available",
    }
    assert rows["too-big"] == {
        "NAME": "too-big",
        "MODEL": "Llama-3.3-70B-Instruct",
        **dict.fromkeys(("GPU", "GPUS", "TP", "CONTEXT", "SEQS"), "-"),
        "READY": "0/1",
        "REASON": "DoesNotFit",
    }
    wide = table(stage.plane.kubectl("get", "mdl", "llama-8b", "-o", "wide"))["llama-8b"]
    assert (wide["VERDICT"], wide["POOL"]) == ("Fits", "nvidia-l4-1")
    assert int(wide["KV-TOKENS"]) > 17_408
    told_once(stage, "llama-8b")
    (node,) = table(stage.plane.kubectl("get", "gpunodes")).values()
    shown = (node["GPU"], node["COUNT"], node["MEMORY"], node["FREE"], node["READY"])
    assert shown == ("L4", "1", "22.1Gi", "-", "True")


def test_autoscalers_and_drains_meet_the_scale_subresource_and_a_disruption_budget(stage):
    stage.add_gpu_node("l40s-1", L40S, 3)
    measured(stage, "l40s-1")
    serve(stage, "llama", LLAMA_8B)
    assert stage.objects("poddisruptionbudgets") == []
    stage.plane.kubectl("scale", "mdl", "llama", "--replicas=3")

    def allowed():
        budgets = stage.objects("poddisruptionbudgets")
        return budgets and budgets[0]["status"].get("disruptionsAllowed") == 1 and budgets[0]

    budget = stage.eventually(allowed, what="one of three may be evicted at a time")
    assert budget["spec"]["minAvailable"] == 2
    assert budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
    stage.eventually(lambda: stage.ready("llama"), what="three serve")
    path = "/apis/shipfitter.dev/v1alpha1/namespaces/default/modeldeployments/llama/scale"
    scale = stage.api.get(path)
    assert (scale["spec"]["replicas"], scale["status"]["replicas"]) == (3, 3)
    assert len(stage.objects("pods", selector=scale["status"]["selector"])) == 3
    stage.plane.kubectl("scale", "mdl", "llama", "--replicas=1")
    stage.eventually(
        lambda: len(stage.pods("llama")) == 1 and not stage.objects("poddisruptionbudgets"),
        what="one is left, which a budget would only keep from being drained",
    )
