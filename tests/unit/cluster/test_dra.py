"""Slices, claims and NodePools through the watches, and in one look at a whole cluster."""

import json

import pytest

from builders_nodes import PLATFORM, node
from builders_slices import gpu_device, slice_manifest
from shipfitter.cluster import dra
from shipfitter.cluster.caches import Caches
from shipfitter.cluster.store import Change
from shipfitter.cluster.survey import expected, survey
from shipfitter.core.capacity import CapacitySource
from shipfitter.core.expected import ExpectedNodes
from shipfitter.core.spellings import resolve_spelling
from unit.cluster.fake_api import eventually

SLICE = slice_manifest("n1", [gpu_device("gpu-0", "l4"), gpu_device("gpu-1", "l40s")])


def claim(name, *devices, driver="gpu.nvidia.com", **result):
    results = [
        {"driver": driver, "pool": "n1", "device": device, "request": "gpus", **result}
        for device in devices
    ]
    status = {"allocation": {"devices": {"results": results}}} if devices else {}
    return {"metadata": {"name": name, "namespace": "team"}, "spec": {}, "status": status}


def offered(capacities):
    return {each.resource_name: (each.allocatable_gpus, each.used_gpus) for each in capacities}


@pytest.fixture
def caches(api, client):
    woken = []
    made = Caches(client, on_capacity_change=woken.append)
    made.woken = woken
    made.start()
    yield made
    made.stop()


def test_a_node_with_only_slices_offers_what_claims_can_take(api, caches):
    api.put("nodes", node("n1", labels=PLATFORM))
    api.put("resourceslices", SLICE)
    eventually(lambda: caches.capacity.nodes({}))
    got = caches.capacity.nodes({}, caches.taken_devices())
    assert offered(got) == {
        "gpu.nvidia.com/NVIDIA-L4": (1, 0),
        "gpu.nvidia.com/NVIDIA-L40S": (1, 0),
    }
    assert {each.source for each in got} == {CapacitySource.RESOURCE_SLICE}
    assert caches.woken[-1] == "n1"
    api.put("resourceclaims", claim("c1", "gpu-1"))
    eventually(caches.taken_devices)
    assert offered(caches.capacity.nodes({}, caches.taken_devices())) == {
        "gpu.nvidia.com/NVIDIA-L4": (1, 0),
        "gpu.nvidia.com/NVIDIA-L40S": (1, 1),
    }


def test_a_class_that_stands_for_a_resource_changes_what_is_offered(api, caches):
    api.put("nodes", node("n1", labels=PLATFORM))
    api.put("resourceslices", SLICE)
    eventually(lambda: len(caches.capacity.nodes({})) == 2)
    api.put(
        "deviceclasses",
        {
            "metadata": {"name": "gpu.nvidia.com"},
            "spec": {"extendedResourceName": "nvidia.com/gpu"},
        },
    )
    eventually(lambda: len(caches.capacity.nodes({})) == 3)
    used = {"n1": {"nvidia.com/gpu": 2}}  # pods of such nodes hold claims too: counted there
    got = offered(caches.capacity.nodes(used, {"n1": frozenset({"gpu-0"})}))
    assert got["nvidia.com/gpu"] == (2, 1)


def test_slices_that_go_take_their_devices_with_them(api, caches):
    api.put("nodes", node("n1", labels=PLATFORM))
    api.put("resourceslices", SLICE)
    eventually(lambda: caches.capacity.nodes({}))
    api.remove("resourceslices", SLICE["metadata"]["name"])
    eventually(lambda: not caches.capacity.nodes({}))


def test_one_look_at_a_cluster_sees_the_same(api, client):
    api.put("nodes", node("n1", labels=PLATFORM))
    api.put("resourceslices", SLICE)
    api.put("resourceclaims", claim("c1", "gpu-0"))
    assert offered(survey(client)) == {
        "gpu.nvidia.com/NVIDIA-L4": (1, 1),
        "gpu.nvidia.com/NVIDIA-L40S": (1, 0),
    }


@pytest.mark.parametrize(
    ("raw", "want"),
    [
        pytest.param(claim("c", "gpu-0", "gpu-1"), {"n1": {"gpu-0", "gpu-1"}}, id="two devices"),
        pytest.param(claim("c"), {}, id="not allocated yet"),
        pytest.param(claim("c", "nic-0", driver="dra.net"), {}, id="another driver's device"),
        pytest.param(claim("c", "gpu-0", adminAccess=True), {}, id="an administrator looks on"),
    ],
)
def test_what_a_claim_holds(raw, want):
    assert dra.taken([dra.resource_claim(raw)]) == want


def test_a_slice_that_moves_to_another_node_leaves_the_first():
    by_node = dra.SlicesByNode()
    first, second = (dra.resource_slice(slice_manifest(n, [gpu_device("gpu-0")])) for n in "ab")
    assert by_node.take(Change("s", None, first)) == {"a"}
    assert by_node.take(Change("s", first, second)) == {"a", "b"}
    assert (by_node.of("a"), by_node.of("b")) == ((), (second,))
    assert by_node.nodes() == {"b"}


def test_what_karpenter_would_make_is_known_and_wakes(api, caches):
    requirement = {
        "key": "node.kubernetes.io/instance-type",
        "operator": "In",
        "values": ["g6e.12xlarge"],
    }
    api.put(
        "nodepools",
        {
            "metadata": {"name": "gpu"},
            "spec": {"template": {"spec": {"requirements": [requirement]}}},
        },
    )
    eventually(caches.expected_nodes)
    (offered_,) = caches.expected_nodes()
    assert (offered_.found.row.product, offered_.gpus_per_node) == ("NVIDIA-L40S", 4)
    assert caches.woken == ["gpu"]
    api.remove("nodepools", "gpu")
    eventually(lambda: not caches.expected_nodes())


def test_what_cluster_autoscaler_would_make_is_known(api, caches):
    prefix = "cluster.x-k8s.io/cluster-api-autoscaler-node-group"
    api.put(
        "machinedeployments",
        {
            "metadata": {
                "name": "gpu",
                "namespace": "machines",
                "annotations": {
                    f"{prefix}-max-size": "3",
                    "capacity.cluster-autoscaler.kubernetes.io/gpu-count": "8",
                },
            },
            "spec": {
                "template": {
                    "metadata": {"labels": {"cluster-api/accelerator": "nvidia-h200-141gb"}}
                }
            },
        },
    )
    eventually(caches.expected_nodes)
    offered_ = caches.expected_nodes()[0]
    assert (offered_.found.row.product, offered_.gpus_per_node) == ("NVIDIA-H200", 8)
    assert offered_.origin == "MachineDeployment gpu"


def test_the_command_line_sees_what_the_operator_was_told_and_autoscalers_offer(api, client):
    assert expected(client) == ()
    declared = [{"product": "L4", "gpusPerNode": 2, "nodeLabels": {"pool": "gpu"}}]
    environment = [{"name": "SHIPFITTER_DECLARED_CAPACITY", "value": json.dumps(declared)}]
    container = {"name": "operator", "env": environment}
    labels = {
        "app.kubernetes.io/name": "shipfitter",
        "app.kubernetes.io/component": "operator",
    }
    api.put(
        "deployments",
        {
            "metadata": {
                "name": "shipfitter-operator",
                "namespace": "shipfitter",
                "labels": labels,
            },
            "spec": {"template": {"spec": {"containers": [container]}}},
        },
    )
    requirement = {
        "key": "node.kubernetes.io/instance-type",
        "operator": "In",
        "values": ["g6e.12xlarge"],
    }
    api.put(
        "nodepools",
        {
            "metadata": {"name": "gpu"},
            "spec": {"template": {"spec": {"requirements": [requirement]}}},
        },
    )
    found = [(each.found.row.product, each.gpus_per_node, each.origin) for each in expected(client)]
    assert found == [("NVIDIA-L4", 2, "declared"), ("NVIDIA-L40S", 4, "NodePool gpu")]
    api.put("nodes", node("n1", labels=PLATFORM | {"pool": "gpu"}, gpus=2))
    (one,) = survey(client)
    assert one.source is CapacitySource.DECLARED


def test_what_is_declared_of_a_node_nobody_describes_is_believed_last(api, client):
    found = resolve_spelling("l4")
    declared = ExpectedNodes(found=found, gpus_per_node=2, labels={"pool": "gpu"})
    made = Caches(client, declared=(declared,))
    made.start()
    try:
        api.put("nodes", node("n1", labels=PLATFORM | {"pool": "gpu"}, gpus=2))
        api.put("nodes", node("n2", labels=PLATFORM, gpus=2))
        eventually(lambda: len(made.capacity.nodes({})) == 2)
        (one, other) = made.capacity.nodes({})
        assert (one.source, len(one.devices)) == (CapacitySource.DECLARED, 2)
        assert other.devices == ()
    finally:
        made.stop()
