"""An agent writes its own node's GPUNode and nothing else: real tokens, a real API server."""

import pytest

from world.controlplane import ApiError

pytestmark = pytest.mark.plane
NAMESPACE = "shipfitter"
ACCOUNTS = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
GPU_NODES = "/apis/shipfitter.dev/v1alpha1/gpunodes"


@pytest.fixture(scope="module")
def plane(installed_plane):
    for node in ("node-a", "node-b"):
        installed_plane.request("POST", "/api/v1/nodes", {"metadata": {"name": node}})
    return installed_plane


def agent_pod(plane, node):
    return plane.request(
        "POST",
        f"/api/v1/namespaces/{NAMESPACE}/pods",
        {
            "metadata": {"generateName": "agent-"},
            "spec": {
                "nodeName": node,
                "serviceAccountName": "shipfitter-agent",
                "containers": [{"name": "agent", "image": "none"}],
            },
        },
    )


@pytest.fixture(scope="module")
def agent(plane):
    """The agent of node-a, with the token its pod would have."""
    pod = agent_pod(plane, "node-a")
    bound = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": pod["metadata"]["name"],
        "uid": pod["metadata"]["uid"],
    }
    answer = plane.request(
        "POST", f"{ACCOUNTS}/shipfitter-agent/token", {"spec": {"boundObjectRef": bound}}
    )
    return plane.client("agent", answer["status"]["token"])


@pytest.fixture(scope="module")
def unbound(plane):
    """The same account without a pod, as `kubectl create token` makes it."""
    return plane.client(
        "unbound", plane.kubectl("create", "token", "shipfitter-agent", "-n", NAMESPACE)
    )


def gpu_node(name, **metadata):
    return {
        "apiVersion": "shipfitter.dev/v1alpha1",
        "kind": "GPUNode",
        "metadata": {"name": name, **metadata},
    }


def owner(name, kind="Node"):
    return {"apiVersion": "v1", "kind": kind, "name": name, "uid": "0-0-0-0"}


def write(client, name, **metadata):
    return client.apply(f"{GPU_NODES}/{name}", gpu_node(name, **metadata), field_manager="agent")


def write_status(client, name):
    body = {**gpu_node(name), "status": {"agentVersion": "0.1.0"}}
    return client.apply(f"{GPU_NODES}/{name}/status", body, field_manager="agent")


def test_an_agent_writes_its_own_nodes_object(plane, agent):
    write(agent, "node-a", ownerReferences=[owner("node-a")])
    write(agent, "node-a")  # ownerless: the collector takes what belongs to a node that is not here
    write_status(agent, "node-a")
    seen = agent.request("GET", f"{GPU_NODES}/node-a")
    assert seen["status"]["agentVersion"] == "0.1.0"


@pytest.fixture(scope="module")
def both(plane):
    for name in ("node-a", "node-b"):
        write(plane.admin, name)


OTHERS = "the agent of node node-a may not write the GPUNode"
REFUSED = [
    pytest.param(lambda c: write(c, "node-b"), f"{OTHERS} node-b", id="another node's object"),
    pytest.param(lambda c: write_status(c, "node-b"), f"{OTHERS} node-b", id="another's status"),
    pytest.param(lambda c: write(c, "node-c"), f"{OTHERS} node-c", id="a name that is no node"),
    pytest.param(
        lambda c: c.request(
            "POST", GPU_NODES, {**gpu_node("x"), "metadata": {"generateName": "x"}}
        ),
        OTHERS,
        id="a name the server makes up",
    ),
    pytest.param(
        lambda c: write(c, "node-a", ownerReferences=[owner("node-b")]),
        "owned by the Node of its name",
        id="a foreign owner",
    ),
    pytest.param(
        lambda c: write(c, "node-a", ownerReferences=[owner("node-a", "Pod")]),
        "owned by the Node of its name",
        id="an owner that is no node",
    ),
    pytest.param(
        lambda c: write(c, "node-a", finalizers=["shipfitter.dev/stay"]),
        "sets no finalizers",
        id="a finalizer",
    ),
    pytest.param(
        lambda c: c.request("DELETE", f"{GPU_NODES}/node-a"), "cannot delete", id="deleting"
    ),
    pytest.param(
        lambda c: c.request("DELETE", GPU_NODES), "cannot deletecollection", id="deleting all"
    ),
    pytest.param(lambda c: c.request("GET", GPU_NODES), "cannot list", id="listing"),
    pytest.param(
        lambda c: c.request("GET", "/api/v1/nodes/node-a"), "cannot get", id="reading nodes"
    ),
    pytest.param(
        lambda c: c.request("GET", "/api/v1/namespaces/default/secrets"),
        "cannot list",
        id="reading secrets",
    ),
]


@pytest.mark.parametrize(("attempt", "want"), REFUSED)
def test_an_agent_is_refused(both, agent, attempt, want):
    with pytest.raises(ApiError, match=want) as refused:
        attempt(agent)
    assert refused.value.code == 403


def test_a_token_without_a_pod_writes_nothing(both, unbound):
    for attempt in (write, write_status):
        with pytest.raises(ApiError, match="not bound to a node") as refused:
            attempt(unbound, "node-a")
        assert refused.value.code == 403


def test_the_policy_itself_refuses_deletion(plane, both, agent):
    """Roles of other origin may allow it; the policy does not lean on ours."""
    role = ["shipfitter-test-delete", "--verb=delete", "--resource=gpunodes.shipfitter.dev"]
    plane.kubectl("create", "clusterrole", *role)
    binding = ["shipfitter-test-delete", "--clusterrole=shipfitter-test-delete"]
    account = f"--serviceaccount={NAMESPACE}:shipfitter-agent"
    plane.kubectl("create", "clusterrolebinding", *binding, account)
    try:
        with pytest.raises(ApiError, match=f"{OTHERS} node-b"):
            agent.request("DELETE", f"{GPU_NODES}/node-b")
        agent.request("DELETE", f"{GPU_NODES}/node-a")
    finally:
        plane.kubectl("delete", "clusterrolebinding,clusterrole", "shipfitter-test-delete")


def test_a_finalizer_of_somebody_else_does_not_stop_an_agent(plane, agent):
    write(plane.admin, "node-a", finalizers=["example.com/audit"])
    try:
        write(agent, "node-a", annotations={"shipfitter.dev/seen": "yes"})
    finally:
        write(plane.admin, "node-a", finalizers=[])
