"""Models that no node holds: replicas over several nodes, by LeaderWorkerSet."""

import os
import signal

import pytest

from e2e.stories import (
    L40S,
    args_of,
    call,
    flag,
    gpus_of,
    measured,
    model_deployment,
    says,

    serving,
    stays,
    uids,
    variant,
)
from world.stage import is_ready

pytestmark = pytest.mark.plane
LLAMA_70B = "hf://meta-llama/Llama-3.3-70B-Instruct"
SERVES = "shipfitter.dev/serves"


@pytest.fixture
def no_groups(stage):
    """The world without LeaderWorkerSet."""
    stage.remove_groups()
    yield stage
    stage.clear()


@pytest.fixture
def groups(stage):
    """The world with LeaderWorkerSet installed."""
    if stage.groups is None:
        stage.install_groups()
    yield stage
    stage.clear()


def pairs(stage, count, **changes):
    """Nodes of two GPUs each: 70 billion parameters take two of them."""
    names = [f"pair-{number}" for number in range(1, count + 1)]
    for name in names:
        stage.add_gpu_node(name, L40S, 2, **changes)
    measured(stage, *names)


def leaders(stage, name):
    return [pod for pod in stage.pods(name) if SERVES in pod["metadata"]["labels"]]


def workers(stage, name):
    return [pod for pod in stage.pods(name) if SERVES not in pod["metadata"]["labels"]]


def test_without_leader_worker_set_it_says_so_and_serves_once_there_is_one(no_groups):
    stage = no_groups
    pairs(stage, 2)
    stage.apply(model_deployment("llama", LLAMA_70B))
    said = says(stage, "llama", "Ready", "LeaderWorkerSetMissing")
    assert "on 4 × NVIDIA-L40S over 2 nodes would fit" in said["message"]
    assert "install its controller" in said["message"]
    assert stays(lambda: stage.pods("llama")) == []
    assert stage.objects("services", selector="shipfitter.dev/modeldeployment=llama") == []
    stage.install_groups()
    stage.eventually(lambda: stage.ready("llama"), what="it is planned and serves by itself")
    (leader,), (worker,) = leaders(stage, "llama"), workers(stage, "llama")
    assert {flag(pod, "node-rank") for pod in (leader, worker)} >= {"0"}
    assert "--headless" in args_of(worker)
    assert leader["spec"]["nodeName"] != worker["spec"]["nodeName"]
    assert (gpus_of(leader), gpus_of(worker)) == (2, 2)
    planned = variant(stage, "llama")
    assert (planned["nodesPerReplica"], planned["pipelineParallelSize"]) == (2, 2)
    models = call(stage, "http://llama.default.svc:8000/v1/models")
    assert "Llama-3.3-70B-Instruct" in models
