"""The agent itself against a real API server, with the chart's rights and a pod's own token."""

import time

import pytest
import yaml

from unit.agent.agents import Agent, host_root
from world import nvml
from world.controlplane import ApiError

pytestmark = pytest.mark.plane
NAMESPACE = "shipfitter"
GPU_NODES = "/apis/shipfitter.dev/v1alpha1/gpunodes"


@pytest.fixture
def node(installed_plane):
    """A Node of the name the agents of these tests report for."""
    made = installed_plane.request("POST", "/api/v1/nodes", {"metadata": {"name": "n1"}})
    yield made
    installed_plane.kubectl("delete", "node", "n1", "--ignore-not-found", "--wait=false")


@pytest.fixture
def kubeconfig(installed_plane, node, tmp_path):
    """What the pod of the DaemonSet on that node would be given."""
    pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
    spec = {
        "nodeName": "n1",
        "serviceAccountName": "shipfitter-agent",
        "containers": [{"name": "agent", "image": "none"}],
    }
    pod = installed_plane.request("POST", pods, {"metadata": {"name": "agent-n1"}, "spec": spec})
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "agent-n1"}
    bound = {"boundObjectRef": reference | {"uid": pod["metadata"]["uid"]}}
    account = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/shipfitter-agent/token"
    answer = installed_plane.request("POST", account, {"spec": bound})
    (tmp_path / "token").write_text(answer["status"]["token"])
    cluster = {"server": installed_plane.url, "certificate-authority": str(installed_plane.ca)}
    path = tmp_path / "kubeconfig"
    path.write_text(
        yaml.safe_dump(
            {
                "current-context": "agent",
                "contexts": [{"name": "agent", "context": {"cluster": "c", "user": "u"}}],
                "clusters": [{"name": "c", "cluster": cluster}],
                "users": [{"name": "u", "user": {"tokenFile": str(tmp_path / "token")}}],
            }
        )
    )
    yield path
    removal = ("--ignore-not-found", "--force", "--grace-period=0", "--wait=false")
    installed_plane.kubectl("delete", "pod", "agent-n1", "-n", NAMESPACE, *removal)


def eventually(read, holds, timeout_seconds=60):
    deadline = time.monotonic() + timeout_seconds
    while not holds(found := read()):
        assert time.monotonic() < deadline, found
        time.sleep(0.1)
    return found


def test_the_agent_reports_its_node_until_the_node_is_gone(
    installed_plane, node, kubeconfig, tmp_path
):
    def objects():
        try:
            found = installed_plane.request("GET", GPU_NODES)["items"]
        except ApiError as error:
            if error.code == 429:  # the kind is brand-new, its storage not ready
                return []
            raise
        return [each for each in found if each["metadata"]["name"] == "n1"]  # others left some

    def gpus(found):
        return [len(each["status"].get("gpus", ())) for each in found if "status" in each]

    scenario = tmp_path / "node.scenario"
    nvml.scenario("NVIDIA-A100-SXM4-40GB", 2, path=scenario, mig={1: [(0, "3g.20gb", 19968)]})
    root = host_root(tmp_path / "host")
    with Agent(scenario, root, kubeconfig) as agent:
        (written,) = eventually(objects, lambda found: gpus(found) == [2])
        assert written["metadata"]["name"] == "n1"
        (owner,) = written["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"]) == ("Node", node["metadata"]["uid"])
        managers = {each["manager"] for each in written["metadata"]["managedFields"]}
        assert managers == {"shipfitter-agent"}
        assert written["status"]["bootId"]
        assert written["status"]["gpus"][1]["migDevices"][0]["profile"] == "3g.20gb"
        assert "A100-SXM4-40GB" in installed_plane.kubectl("get", "gpunodes")

        nvml.scenario("NVIDIA-A100-SXM4-40GB", 1, path=scenario)
        (changed,) = eventually(objects, lambda found: gpus(found) == [1])
        assert "migDevices" not in changed["status"]["gpus"][0]
        assert agent.resident_bytes() < 60 * 2**20
        assert agent.stop() == 0

    nvml.scenario("NVIDIA-A100-SXM4-40GB", 3, path=scenario)
    with Agent(scenario, root, kubeconfig) as again:
        eventually(objects, lambda found: gpus(found) == [3])
        again.stop()
    installed_plane.kubectl("delete", "node", "n1")
    eventually(objects, lambda found: not found)
