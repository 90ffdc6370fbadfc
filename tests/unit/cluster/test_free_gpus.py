"""GPUs that are held, by anybody, and GPUs that are promised."""

from dataclasses import replace

import pytest

from shipfitter.cluster import ledger
from shipfitter.cluster.failures import ApiError
from shipfitter.cluster.free_gpus import ForeignUse
from shipfitter.cluster.gpu_requests import gpu_requests
from shipfitter.cluster.trim import OwnPod, OwnWorkload
from shipfitter.core.capacity import Device, NodeCapacity
from unit.cluster.fake_objects import RefusedError

GPU = "nvidia.com/gpu"


def container(gpus, **more):
    return {"resources": {"limits": {GPU: str(gpus)}} if gpus else {}, **more}


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param({"containers": [{"name": "a"}]}, {}, id="nothing asked for"),
        pytest.param({"containers": [container(1), container(2)]}, {GPU: 3}, id="they add up"),
        pytest.param(
            {"containers": [container(1)], "initContainers": [container(4), container(2)]},
            {GPU: 4},
            id="init containers run alone: the largest counts",
        ),
        pytest.param(
            {
                "containers": [container(1)],
                "initContainers": [container(2, restartPolicy="Always"), container(0)],
            },
            {GPU: 3},
            id="a sidecar stays beside the containers",
        ),
        pytest.param(
            {
                "containers": [
                    {"resources": {"limits": {"cpu": "8", "memory": "1Gi", "hugepages-2Mi": "1Gi"}}}
                ]
            },
            {},
            id="processors and memory are no devices",
        ),
        pytest.param(
            {"containers": [{"resources": {"requests": {"nvidia.com/mig-1g.10gb": "2"}}}]},
            {"nvidia.com/mig-1g.10gb": 2},
            id="slices count under their own name",
        ),
    ],
)
def test_gpu_requests(spec, want):
    assert gpu_requests(spec) == want


def pod(name, node="n1", gpus=1, namespace="other", **labels):
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"nodeName": node, "containers": [container(gpus)]},
        "status": {"phase": "Running"},
    }


OURS = {"shipfitter.dev/modeldeployment": "llama"}


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_pods_of_others_are_added_up_by_node(api, client):
    api.put("pods", pod("a", gpus=2))
    api.put("pods", pod("b", gpus=1))
    api.put("pods", pod("c", node="n2", gpus=4))
    api.put("pods", pod("ours", **OURS))
    assert ForeignUse(client).used() == {"n1": {GPU: 3}, "n2": {GPU: 4}}
    query = api.requests[-1][2]
    assert query["fieldSelector"] == "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"


def test_pods_of_another_operators_namespaces_are_others(api, client):
    api.put("pods", pod("theirs", namespace="elsewhere", gpus=3, **OURS))
    api.put("pods", pod("ours", namespace="team", **OURS))
    assert ForeignUse(client, own_namespaces={"team"}).used() == {"n1": {GPU: 3}}


def test_the_list_is_shared_for_ten_seconds(api, client):
    clock = Clock()
    foreign = ForeignUse(client, clock=clock)
    assert foreign.used() == {}
    api.put("pods", pod("a"))
    clock.now = 9.9
    assert foreign.used() == {}
    clock.now = 10.0
    assert foreign.used() == {"n1": {GPU: 1}}
    assert len(api.requests) == 2


def test_a_list_that_fails_is_no_answer(api, client):
    foreign = ForeignUse(client)
    api.refuse("GET", "pods", RefusedError(500, "InternalError"))
    with pytest.raises(ApiError):
        foreign.used()
    assert foreign.used() == {}


def own_pod(name="p", node="n1", gpus=1, **changes):
    made = OwnPod(
        namespace="team",
        name=name,
        owner="llama",
        variant="llama-v",
        phase="Running",
        ready=True,
        node=node,
        gpus={GPU: gpus},
    )
    return replace(made, **changes)


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        pytest.param({}, {"n1": {GPU: 1}}, id="a bound pod holds its GPUs"),
        pytest.param(
            {"terminating": True}, {"n1": {GPU: 1}}, id="a terminating pod holds them to its end"
        ),
        pytest.param({"phase": "Failed"}, {}, id="an ended pod holds nothing"),
        pytest.param({"node": ""}, {}, id="a pending pod holds nothing yet"),
    ],
)
def test_what_our_pods_hold(changes, want):
    assert ledger.held([own_pod(**changes)]) == want


def workload(replicas=1, gpus=1, owner="llama", **changes):
    made = OwnWorkload(
        namespace="team",
        name=f"{owner}-v",
        uid="u",
        owner=owner,
        variant=f"{owner}-v",
        replicas=replicas,
        gpus={GPU: gpus},
        node_selector={},
        node_affinity=(),
        wish="",
    )
    return replace(made, **changes)


@pytest.mark.parametrize(
    ("replicas", "pods", "want"),
    [
        pytest.param(2, [], 2, id="no pod exists yet"),
        pytest.param(2, [own_pod("a")], 1, id="one is placed, one is missing"),
        pytest.param(2, [own_pod("a"), own_pod("b", node="")], 1, id="one waits for a node"),
        pytest.param(1, [own_pod("a"), own_pod("b", node="")], 1, id="a surge pod waits"),
        pytest.param(1, [own_pod("a", terminating=True)], 1, id="its successor comes"),
        pytest.param(1, [own_pod("a", phase="Failed")], 1, id="an ended pod is replaced"),
        pytest.param(1, [own_pod("a")], 0, id="all are placed"),
        pytest.param(0, [], 0, id="none is wanted"),
    ],
)
def test_what_is_promised_and_not_yet_held(replicas, pods, want):
    claims = ledger.claims([workload(replicas)], pods)
    assert sum(claim.pods for claim in claims) == want


def node(name, gpus=4, used=0, **changes):
    made = NodeCapacity(
        name=name,
        labels={"product": "L40S", "kubernetes.io/hostname": name},
        devices=(Device(product="NVIDIA-L40S", total_bytes=48 * 2**30),) * gpus,
        allocatable_gpus=gpus,
        used_gpus=used,
    )
    return replace(made, **changes)


def in_pool(product):
    expression = {"key": "product", "operator": "In", "values": [product]}
    return ({"matchExpressions": [expression]},)


@pytest.mark.parametrize(
    ("nodes", "wish", "pods", "want_used"),
    [
        pytest.param([node("a"), node("b")], workload(gpus=2), 3, [4, 2], id="node by node"),
        pytest.param([node("a", used=3), node("b")], workload(gpus=2), 1, [3, 2], id="if it fits"),
        pytest.param([node("a", gpus=1)], workload(gpus=2), 5, [0], id="no fit, no booking"),
        pytest.param([node("a", ready=False), node("b")], workload(), 1, [0, 1], id="ready ones"),
        pytest.param(
            [node("a", schedulable=False), node("b")], workload(), 1, [0, 1], id="not cordoned ones"
        ),
        pytest.param(
            [node("a"), node("b", labels={"product": "H100"})],
            workload(node_affinity=in_pool("H100")),
            1,
            [0, 1],
            id="in the pool it was planned for",
        ),
        pytest.param(
            [node("a"), node("b")],
            workload(node_selector={"kubernetes.io/hostname": "b"}),
            1,
            [0, 1],
            id="where its selector allows",
        ),
        pytest.param(
            [node("a", resource_name="nvidia.com/mig-1g.10gb"), node("b")],
            workload(),
            1,
            [0, 1],
            id="under the resource it asks for",
        ),
    ],
)
def test_promises_are_booked(nodes, wish, pods, want_used):
    booked = ledger.charge(nodes, [ledger.Claim(workload=wish, pods=pods)])
    assert [each.used_gpus for each in booked] == want_used


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        pytest.param({"operator": "In", "values": ["L40S", "H100"]}, True, id="in"),
        pytest.param({"operator": "NotIn", "values": ["L40S"]}, False, id="not in"),
        pytest.param({"operator": "Exists"}, True, id="exists"),
        pytest.param({"operator": "DoesNotExist"}, False, id="does not exist"),
        pytest.param({"key": "memory", "operator": "Gt", "values": ["40000"]}, True, id="greater"),
        pytest.param({"key": "memory", "operator": "Lt", "values": ["40000"]}, False, id="less"),
        pytest.param({"key": "none", "operator": "Gt", "values": ["1"]}, False, id="no number"),
    ],
)
def test_affinity_is_read_as_the_scheduler_reads_it(expression, want):
    term = {"matchExpressions": [{"key": "product", **expression}]}
    nodes = [node("a", labels={"product": "L40S", "memory": "46068"})]
    claim = ledger.Claim(workload=workload(node_affinity=(term,)), pods=1)
    assert (ledger.charge(nodes, [claim])[0].used_gpus == 1) is want
