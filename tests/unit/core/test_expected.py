"""Nodes that are not there yet: what is declared, what NodePools offer, and the pools of it."""

from dataclasses import replace

import pytest

from builders_nodes import PLATFORM, capacity, device
from builders_plan import LLAMA_8B, pool, wish
from shipfitter.core.capacity import CapacitySource, Taint
from shipfitter.core.expected import ExpectedNodes, declared_device, expected_pools
from shipfitter.core.inventory import pools
from shipfitter.core.karpenter import nodepool_nodes
from shipfitter.core.plan import NoFit, Plan, solve
from shipfitter.core.spellings import resolve_spelling

LABELS = {"pool": "gpu"}


def expected(spelling="l40s", gpus=4, **changes):
    found = resolve_spelling(spelling)
    made = ExpectedNodes(found=found, gpus_per_node=gpus, labels=LABELS)
    return replace(made, **changes)


def nodepool(*requirements, name="gpu", labels=None, taints=(), **metadata):
    return {
        "metadata": {"name": name, **metadata},
        "spec": {
            "template": {
                "metadata": {"labels": labels or {}},
                "spec": {
                    "taints": list(taints),
                    "requirements": [
                        {"key": key, "operator": operator, "values": list(values)}
                        for key, operator, values in requirements
                    ],
                },
            }
        },
    }


TYPE = "node.kubernetes.io/instance-type"
GPU_NAME, GPU_COUNT = (f"karpenter.k8s.aws/instance-gpu-{what}" for what in ("name", "count"))
FAMILY, SIZE = "karpenter.k8s.aws/instance-family", "karpenter.k8s.aws/instance-size"
EKS_NAME, EKS_COUNT = (f"eks.amazonaws.com/instance-gpu-{what}" for what in ("name", "count"))
SKU = "karpenter.azure.com/sku-name"
GPU_MEMORY = "karpenter.k8s.aws/instance-gpu-memory"
POOL = {"karpenter.sh/nodepool": "gpu"}


@pytest.mark.parametrize(
    ("body", "want"),
    [
        pytest.param(
            nodepool((TYPE, "In", ["g6e.12xlarge", "p5.48xlarge", "m7i.large"])),
            [
                ("NVIDIA-L40S", 4, POOL | {TYPE: "g6e.12xlarge"}),
                ("NVIDIA-H100-80GB-HBM3", 8, POOL | {TYPE: "p5.48xlarge"}),
            ],
            id="instance types; those without GPUs are left out",
        ),
        pytest.param(
            nodepool((GPU_NAME, "In", ["l4"]), (GPU_COUNT, "In", ["1", "4"])),
            [
                ("NVIDIA-L4", 1, POOL | {GPU_NAME: "l4", GPU_COUNT: "1"}),
                ("NVIDIA-L4", 4, POOL | {GPU_NAME: "l4", GPU_COUNT: "4"}),
            ],
            id="a GPU's name with counts",
        ),
        pytest.param(
            nodepool(
                (GPU_NAME, "In", ["a100"]), (GPU_COUNT, "In", ["8"]), (GPU_MEMORY, "In", ["81920"])
            ),
            [
                (
                    "NVIDIA-A100-SXM4-80GB",
                    8,
                    POOL | {GPU_NAME: "a100", GPU_COUNT: "8", GPU_MEMORY: "81920"},
                )
            ],
            id="a name of two cards, told apart by the memory",
        ),
        pytest.param(
            nodepool((GPU_NAME, "In", ["a100"]), (GPU_COUNT, "In", ["8"])),
            [],
            id="a name of two cards alone is no promise",
        ),
        pytest.param(nodepool((GPU_NAME, "In", ["l4"])), [], id="a name without a count neither"),
        pytest.param(nodepool((TYPE, "NotIn", ["g6e.12xlarge"])), [], id="what is excluded"),
        pytest.param(
            nodepool((TYPE, "In", ["g6.xlarge"]), deletionTimestamp="2026-01-01T00:00:00Z"),
            [],
            id="on its way out",
        ),
        pytest.param({"metadata": {"name": "empty"}, "spec": {}}, [], id="an empty one"),
        pytest.param(
            nodepool(
                (FAMILY, "In", ["g6e", "m7i"]), (SIZE, "In", ["xlarge", "4xlarge", "48xlarge"])
            ),
            [
                ("NVIDIA-L40S", 1, POOL | {FAMILY: "g6e", GPU_COUNT: "1"}),
                ("NVIDIA-L40S", 8, POOL | {FAMILY: "g6e", GPU_COUNT: "8"}),
            ],
            id="a family: one kind for each number of GPUs its sizes have",
        ),
        pytest.param(
            nodepool((FAMILY, "In", ["p5"]), (GPU_COUNT, "In", ["8"])),
            [("NVIDIA-H100-80GB-HBM3", 8, POOL | {FAMILY: "p5", GPU_COUNT: "8"})],
            id="a family and a number",
        ),
        pytest.param(
            nodepool((EKS_NAME, "In", ["l40s"]), (EKS_COUNT, "In", ["4"])),
            [("NVIDIA-L40S", 4, POOL | {EKS_NAME: "l40s", EKS_COUNT: "4"})],
            id="EKS Auto Mode's own labels",
        ),
        pytest.param(
            nodepool((SKU, "In", ["Standard_NC24ads_A100_v4"])),
            [("NVIDIA-A100-80GB-PCIe", 1, POOL | {SKU: "Standard_NC24ads_A100_v4"})],
            id="Azure's machine types",
        ),
        pytest.param(
            nodepool((TYPE, "In", ["g6.xlarge", "g6e.xlarge"]), (TYPE, "In", ["g6e.xlarge"])),
            [("NVIDIA-L40S", 1, POOL | {TYPE: "g6e.xlarge"})],
            id="two requirements on one label: what both allow",
        ),
    ],
)
def test_what_a_nodepool_would_make(body, want):
    got = nodepool_nodes(body)
    assert [(each.found.row.product, each.gpus_per_node, each.labels) for each in got] == want


def test_a_nodepools_taints_and_labels_are_those_of_its_nodes():
    taint = {"key": "team", "value": "llm", "effect": "NoSchedule"}
    (got,) = nodepool_nodes(
        nodepool((TYPE, "In", ["g6.xlarge"]), labels={"team": "llm"}, taints=[taint])
    )
    assert got.taints == (Taint(key="team", value="llm"),)
    assert got.labels == POOL | {"team": "llm", TYPE: "g6.xlarge"}
    assert got.origin == "NodePool gpu"


def test_an_expected_pool_is_selected_by_labels_known_before_the_node():
    (got,) = expected_pools([expected()], (), ())
    assert (got.name, got.source) == ("nvidia-l40s-4", CapacitySource.EXPECTED)
    assert (got.total_bytes, got.gpus_per_node) == (device().total_bytes, 4)
    assert (got.selector, got.selector_is_exact, got.free_gpus) == (LABELS, True, 0)


@pytest.mark.parametrize(
    "node",
    [
        pytest.param(capacity("a", "NVIDIA-L4", 1, labels=PLATFORM | LABELS), id="another card"),
        pytest.param(capacity("a", "NVIDIA-L40S", 4), id="the same card, however it is labelled"),
    ],
)
def test_a_node_that_is_there_tells_better(node):
    assert expected_pools([expected()], (node,), pools((node,))) == ()


def test_a_node_that_cannot_take_pods_yet_tells_nothing():
    node = capacity("a", "NVIDIA-L4", 1, labels=PLATFORM | LABELS, allocatable_gpus=0)
    assert len(expected_pools([expected()], (node,), pools((node,)))) == 1


def test_what_is_declared_of_a_node_by_its_labels():
    assert declared_device([expected()], PLATFORM | LABELS) == device()
    assert declared_device([expected()], PLATFORM) is None


AWAITED = pool("L40S", nodes=0, source=CapacitySource.EXPECTED, selector=LABELS)


@pytest.mark.parametrize(
    ("there", "want"),
    [
        pytest.param((), "NVIDIA-L40S", id="nothing there: the expected one"),
        pytest.param((pool("L4"),), "NVIDIA-L4", id="a free GPU there that would do"),
        pytest.param(
            (replace(pool("L4"), nodes=()),), "NVIDIA-L40S", id="one that would do, but is taken"
        ),
        pytest.param((pool("T4"),), "NVIDIA-L40S", id="a free GPU there that is too small"),
    ],
)
def test_expected_nodes_are_planned_for_only_where_nothing_free_would_do(there, want):
    got = solve(wish(LLAMA_8B), (*there, AWAITED))
    assert isinstance(got, Plan)
    assert got.variants[0].sizing.pool.product == want


def test_where_neither_does_the_answer_is_of_what_is_there():
    small = replace(AWAITED, **{"product": "Tesla-T4", "total_bytes": pool("T4").total_bytes})
    assert isinstance(solve(wish("Qwen/Qwen3-32B"), (pool("L4"), small)), NoFit)
    taken = replace(pool("L4"), nodes=())
    got = solve(wish(LLAMA_8B), (taken, small))
    assert isinstance(got, Plan)
    assert got.variants[0].sizing.pool.product == "NVIDIA-L4", "it waits there"
