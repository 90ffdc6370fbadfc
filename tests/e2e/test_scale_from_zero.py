"""Nodes that are not there yet: the plan is made for them, and follows what then comes."""

import pytest

from e2e.stories import L4, L40S, LLAMA_8B, model_deployment, says, uids, variant

pytestmark = pytest.mark.plane
DECLARED = [{"product": L40S, "gpusPerNode": 1, "nodeLabels": {"pool": "gpu"}}]


@pytest.fixture
def declaring(stage):
    """The chart declares nodes with L40S that an autoscaler would make."""
    stage.upgrade({"capacity": {"declared": DECLARED}})
    yield stage
    stage.upgrade({"capacity": {"declared": []}})


def waits(stage):
    """The pod asks for labels known before any node is, and waits."""
    stage.apply(model_deployment("llama", LLAMA_8B))
    says(stage, "llama", "Available", "WaitingForGpu")
    planned = variant(stage, "llama")
    assert (planned["gpuProduct"], planned["capacitySource"]) == (L40S, "Expected")
    (pod,) = stage.pods("llama")
    required = pod["spec"]["affinity"]["nodeAffinity"]
    (term,) = required["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert {"key": "pool", "operator": "In", "values": ["gpu"]} in term["matchExpressions"]
    return pod


def test_the_node_that_was_expected_comes_and_the_waiting_pod_runs_there(declaring):
    pod = waits(declaring)
    declaring.add_gpu_node("new-1", L40S, 1, labels={"pool": "gpu"})
    declaring.eventually(lambda: declaring.ready("llama"), what="it serves on the new node")
    assert uids(declaring.pods("llama")) == uids([pod]), "no restart for what was planned"
    declaring.eventually(
        lambda: variant(declaring, "llama")["capacitySource"] in ("Measured", "Label"),
        what="the plan says who tells of its node: the agent, or the labels where they were sooner",
    )


def test_a_node_that_comes_with_less_is_planned_for_anew(declaring):
    waits(declaring)
    declaring.add_gpu_node("new-1", L4, 1, labels={"pool": "gpu"})
    declaring.eventually(lambda: declaring.ready("llama"), what="it serves on what came")
    planned = variant(declaring, "llama")
    assert planned["gpuProduct"] == L4
    assert planned["capacitySource"] in ("Measured", "Label")
