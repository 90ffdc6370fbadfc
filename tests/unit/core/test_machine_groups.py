"""What machine groups that cluster-autoscaler grows from nothing would make."""

import pytest

from shipfitter.core.capacity import Taint
from shipfitter.core.machine_groups import CAPACITY, machine_group_nodes

MAX_SIZE = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size"
OPENSHIFT_MAX_SIZE = "machine.openshift.io/cluster-api-autoscaler-node-group-max-size"
GROWS = {MAX_SIZE: "4"}
L40S = {"nvidia.com/gpu.product": "NVIDIA-L40S"}


def group(annotations, *, labels=None, spec=None, kind="MachineDeployment", **metadata):
    template = {"metadata": {"labels": labels or {}}, "spec": spec or {}}
    return {
        "kind": kind,
        "metadata": {"name": "gpu", "annotations": annotations, **metadata},
        "spec": {"template": template},
    }


@pytest.mark.parametrize(
    ("body", "want"),
    [
        pytest.param(
            group(GROWS | {f"{CAPACITY}/gpu-count": "2"}, labels=L40S),
            ("NVIDIA-L40S", 2, L40S),
            id="labels of the machines' template",
        ),
        pytest.param(
            group(
                GROWS
                | {
                    f"{CAPACITY}/gpu-count": "8",
                    f"{CAPACITY}/labels": "cluster-api/accelerator=nvidia-h200-141gb,pool=big",
                }
            ),
            ("NVIDIA-H200", 8, {"cluster-api/accelerator": "nvidia-h200-141gb", "pool": "big"}),
            id="labels that an annotation declares",
        ),
        pytest.param(
            group(GROWS | {f"{CAPACITY}/labels": "node.kubernetes.io/instance-type=g6e.12xlarge"}),
            ("NVIDIA-L40S", 4, {"node.kubernetes.io/instance-type": "g6e.12xlarge"}),
            id="an instance type knows its own number",
        ),
        pytest.param(
            group(
                {OPENSHIFT_MAX_SIZE: "2", "machine.openshift.io/GPU": "1"},
                labels={"machine.openshift.io/cluster-api-machineset": "gpu"},
                spec={
                    "metadata": {"labels": {"team": "llm"}},
                    "providerSpec": {"value": {"instanceType": "g5.xlarge"}},
                },
                kind="MachineSet",
            ),
            ("NVIDIA-A10G", 1, {"team": "llm"}),
            id="OpenShift: the provider's machine type, and labels for nodes",
        ),
    ],
)
def test_the_kind_of_node_a_group_would_make(body, want):
    (got,) = machine_group_nodes(body)
    assert (got.found.row.product, got.gpus_per_node, got.labels) == want
    assert got.origin == f"{body['kind']} gpu"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(group({f"{CAPACITY}/gpu-count": "2"}, labels=L40S), id="nobody grows it"),
        pytest.param(
            group({MAX_SIZE: "0", f"{CAPACITY}/gpu-count": "2"}, labels=L40S), id="not even to one"
        ),
        pytest.param(group(GROWS, labels={"team": "web"}), id="no GPU"),
        pytest.param(
            group(GROWS | {f"{CAPACITY}/gpu-count": "2"}, labels={"team": "llm"}),
            id="GPUs of which nothing tells the kind",
        ),
        pytest.param(
            group(GROWS | {f"{CAPACITY}/gpu-count": "0"}, labels=L40S), id="said to have none"
        ),
        pytest.param(
            group(
                {OPENSHIFT_MAX_SIZE: "2"},
                spec={"providerSpec": {"value": {"instanceType": "g5.xlarge"}}},
            ),
            id="no label by which a pod could ask for it",
        ),
        pytest.param(
            group(
                GROWS | {f"{CAPACITY}/gpu-count": "2"},
                labels=L40S,
                deletionTimestamp="2026-01-01T00:00:00Z",
            ),
            id="on its way out",
        ),
        pytest.param({"kind": "MachineSet", "metadata": {"name": "bare"}}, id="an empty one"),
    ],
)
def test_a_group_that_promises_no_gpu(body):
    assert machine_group_nodes(body) == ()


def test_its_nodes_have_the_taints_that_it_declares():
    taints = {f"{CAPACITY}/taints": "dedicated=llm:NoSchedule, gpu:NoExecute"}
    (got,) = machine_group_nodes(
        group(GROWS | {f"{CAPACITY}/gpu-count": "1"} | taints, labels=L40S)
    )
    assert got.taints == (
        Taint(key="dedicated", value="llm"),
        Taint(key="gpu", effect="NoExecute"),
    )
