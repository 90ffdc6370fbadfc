"""Promises of devices that a DRA driver hands out under several names: each is booked once."""

import pytest

from builders_nodes import PLATFORM
from builders_nodes import node as node_manifest
from builders_slices import counter_set, gpu_device, partitionable, slices_of
from shipfitter.cluster import ledger
from shipfitter.cluster.trim import OwnWorkload
from shipfitter.core.node_capacity import node_capacities

PLAIN = "nvidia.com/gpu"  # mapped to the driver's class for whole GPUs
L4, L40S = "gpu.nvidia.com/NVIDIA-L4", "gpu.nvidia.com/NVIDIA-L40S"
A100 = "gpu.nvidia.com/NVIDIA-A100-SXM4-40GB"
SLICE = "mig.nvidia.com/NVIDIA-A100-SXM4-40GB-MIG-{}"


def offered(slices):
    """Everything that a node with these slices hands out."""
    return node_capacities(
        node_manifest("n1", labels=PLATFORM), None, {}, slices=slices, mapped={PLAIN}
    )


MIXED = offered(
    slices_of(
        "n1", [gpu_device("a"), gpu_device("b"), gpu_device("c", "l4"), gpu_device("d", "l4")]
    )
)
PARTITIONS = offered(
    slices_of(
        "n1",
        [*partitionable(0), *partitionable(1)],
        sharedCounters=[counter_set(0), counter_set(1)],
    )
)


def promise(resource, gpus, pods=1, name="w"):
    workload = OwnWorkload(
        namespace="default",
        name=name,
        uid=name,
        owner=name,
        variant=name,
        replicas=pods,
        gpus={resource: gpus},
        node_selector={},
        node_affinity=(),
        wish="",
    )
    return ledger.Claim(workload=workload, pods=pods)


def left(nodes):
    return {each.resource_name: each.allocatable_gpus - each.used_gpus for each in nodes}


@pytest.mark.parametrize(
    ("promises", "want"),
    [
        pytest.param([], {PLAIN: 4, L40S: 2, L4: 2}, id="nothing is promised"),
        pytest.param(
            [promise(PLAIN, 1)], {PLAIN: 3, L40S: 1, L4: 1}, id="a plain one may be of either kind"
        ),
        pytest.param(
            [promise(L40S, 1)], {PLAIN: 3, L40S: 1, L4: 2}, id="a claimed one is of its kind"
        ),
        pytest.param(
            [promise(L40S, 2, name="a"), promise(PLAIN, 2, name="b")],
            {PLAIN: 0, L40S: 0, L4: 0},
            id="both ways at once",
        ),
        pytest.param(
            [promise(PLAIN, 4, name="a"), promise(L40S, 1, name="b")],
            {PLAIN: 0, L40S: 0, L4: 0},
            id="nothing is left for a claim",
        ),
    ],
)
def test_whole_gpus(promises, want):
    assert left(ledger.charge(MIXED, promises)) == want


@pytest.mark.parametrize(
    ("promises", "want"),
    [
        pytest.param([], (2, 14, 6, 4), id="nothing is promised"),
        pytest.param([promise(A100, 1)], (1, 7, 3, 2), id="a whole GPU costs its partitions"),
        pytest.param(
            [promise(SLICE.format("1g.5gb"), 1)],
            (1, 13, 5, 3),
            id="a partition may cost a whole GPU, and its share of larger ones",
        ),
        pytest.param([promise(SLICE.format("3g.20gb"), 4)], (0, 0, 0, 0), id="all halves"),
    ],
)
def test_partitions(promises, want):
    got = left(ledger.charge(PARTITIONS, promises))
    names = (A100, *(SLICE.format(profile) for profile in ("1g.5gb", "2g.10gb", "3g.20gb")))
    assert tuple(got[name] for name in names) == want
    assert got[PLAIN] == want[0]
