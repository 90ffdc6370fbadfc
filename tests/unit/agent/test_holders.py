"""The agent beside a kubelet that tells which GPUs pods hold."""

import json
import subprocess
import sys

import pytest

from shipfitter.agent.report import POD_RESOURCES_READ
from unit.agent.agents import RUN, Agent, environment, host_root
from unit.agent.gpunode_api import GpuNodeApi, bound_token, kubeconfig
from world import nvml
from world.nodes.podresources import Container, HoldingPod, Socket

MOST_BYTES = 60 * 2**20


@pytest.fixture
def api():
    with GpuNodeApi().running() as running:
        yield running


class Kubelet:
    """Two GPUs, of which pods hold what `held` says."""

    def __init__(self, folder):
        self.scenario = nvml.scenario("NVIDIA-L40S", 2, path=folder / "a.scenario", used_mib=9_000)
        self.gpus = nvml.gpu_uuids(self.scenario)
        self.held = ()
        self.socket = Socket(self.pods, lambda: {"nvidia.com/gpu": self.gpus})

    def pods(self):
        devices = {"nvidia.com/gpu": self.held}
        return [HoldingPod(name="engine", containers=(Container(devices=devices),))]


@pytest.fixture
def kubelet(tmp_path):
    made = Kubelet(tmp_path)
    yield made
    made.socket.stop()


def told(status):
    return next((c for c in status["conditions"] if c["type"] == POD_RESOURCES_READ), None)


def test_a_pod_that_takes_a_gpu_and_a_kubelet_that_goes_are_news(api, kubelet, tmp_path):
    where = {"SHIPFITTER_AGENT_POD_RESOURCES": str(kubelet.socket.path)}
    config = kubeconfig(tmp_path, api.url, bound_token())
    with Agent(kubelet.scenario, host_root(tmp_path), config, **where) as agent:
        api.wait_for(lambda: len(api.status_writes()) == 1)
        first = api.status_writes()[0]
        assert (first["allocated"], first["summary"]["free"]) == ([], "2")
        assert told(first)["status"] == "True"

        kubelet.held = kubelet.gpus[1:]
        api.wait_for(lambda: len(api.status_writes()) == 2)
        second = api.status_writes()[1]
        assert (second["allocated"], second["summary"]["free"]) == ([kubelet.gpus[1]], "1")

        kubelet.socket.stop()
        api.wait_for(lambda: len(api.status_writes()) == 3)
        third = api.status_writes()[2]
        assert ("allocated" in third, third["summary"]["free"]) == (False, "-")
        assert told(third)["reason"] == "KubeletSilent"
        assert "No such file" in told(third)["message"]
        assert third["gpus"] == second["gpus"]
        assert agent.resident_bytes() < MOST_BYTES
        assert agent.stop() == 0


def test_memory_that_no_pod_holds_is_a_strangers_whoever_works_there(kubelet, tmp_path):
    kubelet.held = kubelet.gpus[:1]
    kubelet.scenario.write_text(kubelet.scenario.read_text() + "gpu.1.processes 4242:9000\n")
    done = subprocess.run(
        [sys.executable, "-c", RUN, "--once", "-o", "json"],
        env=environment(
            kubelet.scenario,
            host_root(tmp_path),
            SHIPFITTER_AGENT_POD_RESOURCES=str(kubelet.socket.path),
        ),
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    gpus = json.loads(done.stdout)["status"]["gpus"]
    assert [gpu["memory"]["foreignUsedBytes"] // 2**20 for gpu in gpus] == [0, 9_216]


def test_memory_of_partitions_that_pods_use_is_no_strangers(kubelet, tmp_path):
    slices = [(0, "3g.20gb", 19_968)]
    scenario = nvml.scenario(
        "a100-40gb", 1, path=tmp_path / "m.scenario", mig={0: slices}, used_mib=30_000
    )
    done = subprocess.run(
        [sys.executable, "-c", RUN, "--once", "-o", "json"],
        env=environment(
            scenario,
            host_root(tmp_path),
            SHIPFITTER_AGENT_POD_RESOURCES=str(kubelet.socket.path),
        ),
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    (gpu,) = json.loads(done.stdout)["status"]["gpus"]
    assert gpu["memory"]["foreignUsedBytes"] == 0
