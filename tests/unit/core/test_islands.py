"""NVLink islands: what is free in them, and when ranks must talk over PCIe."""

from dataclasses import replace

import pytest

from builders_nodes import capacity, gpu, gpu_labels, gpunode, node
from shipfitter.core.inventory import pools
from shipfitter.core.islands import Island, given_back
from shipfitter.core.node_capacity import node_capacity

H100 = "NVIDIA-H100-80GB-HBM3"
TWO_ISLANDS = ((0, 1, 2, 3), (4, 5, 6, 7))


def eight(allocated=None, **status):
    """A node of eight GPUs in two islands, as its agent reports it."""
    gpus = tuple(gpu(H100, uuid=f"GPU-{place}") for place in range(8))
    told = {} if allocated is None else {"allocated": [f"GPU-{place}" for place in allocated]}
    return node_capacity(
        node(labels=gpu_labels(H100, 8), gpus=8),
        gpunode(gpus=gpus, nvlinkIslands=TWO_ISLANDS, **told, **status),
        used_gpus=len(allocated or ()),
    )


def pool_of(*nodes):
    (pool,) = pools(tuple(nodes))
    return pool


@pytest.mark.parametrize(
    ("allocated", "want"),
    [
        pytest.param(None, (None, None), id="nobody says what pods hold"),
        pytest.param((), (4, 4), id="all are free"),
        pytest.param((0, 1, 5), (2, 3), id="what pods hold is taken"),
    ],
)
def test_what_is_free_in_each_island(allocated, want):
    assert tuple(island.free for island in eight(allocated).islands) == want


def test_a_sick_gpu_is_not_free():
    gpus = tuple(gpu(H100, uuid=f"GPU-{place}") for place in range(8))
    sick = gpu(H100, uuid="GPU-0", health={"state": "Unhealthy", "reason": "Xid79"})
    found = node_capacity(
        node(labels=gpu_labels(H100, 8), gpus=7),
        gpunode(gpus=(sick, *gpus[1:]), nvlinkIslands=TWO_ISLANDS, allocated=[]),
        used_gpus=0,
    )
    assert [island.free for island in found.islands] == [3, 4]


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(
            node_capacity(
                node(labels=gpu_labels(H100, 8), gpus=8),
                gpunode(gpus=(gpu(H100),) * 8, nvlinkIslands=TWO_ISLANDS, allocated=[]),
                used_gpus=0,
                stale=True,
            ),
            id="what a silent agent said of pods is old",
        ),
    ],
)
def test_holders_of_an_old_report_are_not_believed(found):
    assert [island.free for island in found.islands] == [None, None]


@pytest.mark.parametrize(
    ("nodes", "gpus", "groups", "want"),
    [
        pytest.param([eight(())], 4, 2, "", id="each of two finds an island"),
        pytest.param([eight(())], 1, 8, "", id="one GPU needs no link"),
        pytest.param([capacity(product="NVIDIA-L40S")], 4, 1, "", id="cards without NVLink"),
        pytest.param(
            [eight(())],
            *(8, 1),
            "no NVLink island has 8 GPUs (at most 4), so its ranks talk over PCIe",
            id="more than any island has",
        ),
        pytest.param(
            [eight((0, 1, 4, 5))],
            *(4, 1),
            "no NVLink island has 4 GPUs free (at most 2), so its ranks talk over PCIe",
            id="half of each island is taken",
        ),
        pytest.param([eight((0, 1, 2, 3))], 4, 1, "", id="all of one is taken, the other is free"),
        pytest.param(
            [eight((0, 1)), replace(eight((0, 4)), name="n2")],
            *(2, 5),
            "",
            id="pairs find room in every rest",
        ),
        pytest.param(
            [eight((0, 4)), replace(eight(()), name="n2")],
            *(4, 3),
            "only 2 of 3 find 4 free GPUs in one NVLink island",
            id="some do and some do not",
        ),
        pytest.param([replace(eight(), used_gpus=0)], 4, 2, "", id="an idle node, whoever asks"),
        pytest.param(
            [replace(eight(), used_gpus=2)],
            *(4, 1),
            "whether one NVLink island has 4 GPUs free is not known, for nobody says which are "
            "held: the chart's value agent.podResources lets agents ask the kubelet",
            id="two of eight are taken, and nobody says which",
        ),
        pytest.param(
            [replace(eight(), used_gpus=2)], 2, 1, "", id="a pair finds room whichever they are"
        ),
    ],
)
def test_what_is_said_of_ranks_that_nvlink_does_not_join(nodes, gpus, groups, want):
    assert pool_of(*nodes).crossing(gpus, groups) == want


def test_our_own_gpus_come_back_into_one_island():
    islands = (Island(gpus=4, free=0), Island(gpus=4, free=1), Island(gpus=4))
    assert [each.free for each in given_back(islands, 4)] == [4, 4, None]


def test_a_slice_or_a_share_of_a_gpu_has_no_island():
    shared = gpu_labels(H100, 8) | {
        "nvidia.com/gpu.sharing-strategy": "time-slicing",
        "nvidia.com/gpu.replicas": "2",
    }
    found = node_capacity(
        node(labels=shared, gpus=16),
        gpunode(gpus=(gpu(H100),) * 8, nvlinkIslands=TWO_ISLANDS, allocated=[]),
        used_gpus=0,
    )
    assert found.islands == ()
