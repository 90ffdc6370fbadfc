"""Nodes with two NVLink islands, and agents that ask the kubelet which GPUs pods hold."""

import pytest

from e2e.stories import H100, LLAMA_8B, model_deployment, serve, variant
from world import nvml
from world.stage import Stage

pytestmark = pytest.mark.plane
AGENTS = "gpu-agents"
ISLANDS = ((0, 1), (2, 3))


@pytest.fixture(scope="module")
def islands():
    """One node of four GPUs, joined in pairs."""
    values = {"agent": {"podResources": True, "namespace": AGENTS}}
    with Stage(values=values, install=False) as stage:
        stage.plane.kubectl("create", "namespace", AGENTS)
        stage.install()
        stage.eventually(stage.operator_ready, what="the operator is ready")
        stage.add_gpu_node("h100-1", H100, 4, gpu_islands=ISLANDS, pod_resources=True)
        nvml.scenario(
            H100,
            4,
            path=stage.folder / "h100-1.scenario",
            node="h100-1",
            gpus={place: {"island": at} for at, island in enumerate(ISLANDS) for place in island},
        )
        yield stage


def agent_says(stage):
    (found,) = stage.objects("gpunodes") or [{}]
    return found.get("status") or {}


def test_a_pair_of_ranks_lands_in_a_free_island_and_the_plan_says_so_when_there_is_none(islands):
    stage = islands
    stage.eventually(
        lambda: (
            agent_says(stage).get("nvlinkIslands") == [[0, 1], [2, 3]]
            and agent_says(stage).get("allocated") == []
        ),
        what="the agent tells of two islands, all free",
    )
    serve(stage, "one", LLAMA_8B, gpus={"tensorParallelSize": 1})
    gpus = [gpu["uuid"] for gpu in agent_says(stage)["gpus"]]
    held = stage.eventually(
        lambda: agent_says(stage).get("allocated"), what="the agent tells which GPU is held"
    )
    assert held[0] in gpus
    assert agent_says(stage)["summary"]["free"] == "3"

    serve(stage, "pair", LLAMA_8B, gpus={"tensorParallelSize": 2})
    assert variant(stage, "pair")["tensorParallelSize"] == 2
    assert "NVLink" not in stage.condition("pair", "Planned")["message"]
    stage.eventually(
        lambda: len(agent_says(stage).get("allocated") or ()) == 3, what="three GPUs are held"
    )
    pair = [gpus.index(uuid) for uuid in agent_says(stage)["allocated"] if uuid not in held]
    assert tuple(sorted(pair)) in ISLANDS

    stage.delete("modeldeployment", "pair")
    stage.eventually(lambda: agent_says(stage)["summary"]["free"] == "3", what="it let them go")
    serve(stage, "two", LLAMA_8B, gpus={"tensorParallelSize": 1})  # the rest of the first island
    serve(stage, "three", LLAMA_8B, gpus={"tensorParallelSize": 1})
    stage.delete("modeldeployment", "two")
    stage.eventually(
        lambda: len(agent_says(stage).get("allocated") or ()) == 2, what="one of each is held"
    )
    stage.apply(model_deployment("split", LLAMA_8B, gpus={"tensorParallelSize": 2}))
    told = stage.eventually(
        lambda: stage.condition("split", "Planned").get("message"), what="it is planned"
    )
    assert "no NVLink island has 2 GPUs free (at most 1), so its ranks talk over PCIe" in told
    stage.eventually(lambda: stage.ready("split"), what="it serves all the same")
