"""Scale from zero: the plan for a node that is to come, and what happens when it comes."""

from dataclasses import replace

from builders_decide import NOW, Settled, condition, manifests, mdl, world
from builders_plan import node
from shipfitter.core.capacity import Taint
from shipfitter.core.expected import ExpectedNodes
from shipfitter.core.spellings import resolve_spelling
from shipfitter.decide import Settings, decide

LABELS = {"pool": "gpu"}


def awaited(spelling="l40s", gpus=1, **changes):
    found = resolve_spelling(spelling)
    return replace(ExpectedNodes(found=found, gpus_per_node=gpus, labels=LABELS), **changes)


def arrived(product, gpus=1, **changes):
    made = node("new", product, gpus, **changes)
    return replace(made, labels={**made.labels, **LABELS})


def planned(outcome):
    return outcome.status["plan"]["variants"][0]


def affinity(deployment):
    spec = deployment["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    (term,) = spec["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    return {e["key"]: e["values"] for e in term["matchExpressions"] if e["operator"] == "In"}


def test_pods_ask_for_labels_that_an_autoscaler_knows():
    outcome = decide(mdl(), world(expected=(awaited(),)))
    (deployment,) = manifests(outcome, "Deployment")
    assert affinity(deployment) == {"pool": ["gpu"]}
    assert planned(outcome)["capacitySource"] == "Expected"
    assert condition(outcome, "CapacityKnown")["status"] == "True"


def test_what_the_chart_declares_counts_likewise():
    settings = Settings(declared=(awaited(),))
    assert planned(decide(mdl(), world(settings=settings)))["gpuProduct"] == "NVIDIA-L40S"


def test_nodes_the_deployment_may_not_use_are_not_awaited():
    spot = awaited(taints=(Taint(key="spot", value="yes"),))
    refused = decide(mdl(), world(expected=(spot,)))
    assert condition(refused, "Planned")["reason"] == "NoGpuCapacity"
    elsewhere = mdl(placement={"nodeSelector": {"pool": "other"}})
    assert not decide(elsewhere, world(expected=(awaited(),))).applies
    by_claim = mdl(gpus={"allocation": "DRA"})
    assert not decide(by_claim, world(expected=(awaited(),))).applies


def settled_on_expected():
    """A deployment whose pods wait for a node that was asked for."""
    first = decide(mdl(), world(expected=(awaited(),)))
    (deployment,) = manifests(first, "Deployment")
    return first, deployment


def test_a_node_as_expected_changes_nothing_but_the_source():
    first, deployment = settled_on_expected()
    on = Settled(arrived("L40S"))
    live = replace(on.workload, name=deployment["metadata"]["name"], body=on.workload.body)
    live = replace(live, body={**deployment, "metadata": {**deployment["metadata"], "uid": "u"}})
    again = decide(
        mdl(status=first.status),
        world(arrived("L40S"), expected=(awaited(),), workloads=(live,)),
    )
    assert not manifests(again, "Deployment"), "a restart would bring nothing"
    assert planned(again)["capacitySource"] == "Measured"
    assert planned(again)["maxModelLen"] == planned(first)["maxModelLen"]


def test_a_node_with_less_than_expected_is_planned_for_anew():
    first, _ = settled_on_expected()
    small = (arrived("L4"),)
    early = decide(mdl(status=first.status), world(*small, expected=(awaited(),)))
    assert condition(early, "Drifted")["reason"] == "PlanNoLongerFits"
    late = decide(
        mdl(status=early.status),
        world(*small, expected=(awaited(),), now_seconds=NOW + 60),
    )
    assert (planned(late)["gpuProduct"], planned(late)["capacitySource"]) == (
        "NVIDIA-L4",
        "Measured",
    )
    assert len(manifests(late, "Deployment")) == 1


def test_reports_that_are_not_believed_stand_in_the_condition():
    nodes = [replace(node(f"n{n}", "L40S"), remark="its agent tells much") for n in range(5)]
    told = condition(decide(mdl(), world(*nodes)), "CapacityKnown")["message"]
    assert "; n0: its agent tells much; " in told
    assert told.endswith("; and 2 more nodes")
