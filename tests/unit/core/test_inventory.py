"""Pools: which nodes belong together, what they promise, and how they are selected."""

from dataclasses import replace

import pytest

from builders_nodes import PLATFORM, capacity, device, gpu_labels
from shipfitter.core.inventory import CapacitySource, NodeCapacity, PoolNode, Taint, pools
from shipfitter.units import GIB, MIB

CPU_NODE = NodeCapacity(name="cpu", labels=PLATFORM, devices=(), allocatable_gpus=0)


def bare(name, product="NVIDIA-L40S", count=8, **changes):
    """A node whose labels tell nothing about its GPUs."""
    return capacity(name, product, count, labels=PLATFORM, **changes)


def sized(name, mib, **changes):
    return bare(name, devices=(device(total_bytes=mib * MIB),) * 8, **changes)


HALVES = (device(total_bytes=22_700 * MIB),) * 4
DOUBLES = (device(total_bytes=90_000 * MIB),) * 4


def shape(nodes):
    """Names, bytes per GPU in MiB and members: what most tests look at."""
    return [
        (pool.name, pool.total_bytes // MIB, [node.name for node in pool.nodes])
        for pool in pools(tuple(nodes))
    ]


def test_a_pool_is_told_as_it_is():
    taint = Taint(key="nvidia.com/gpu")
    nodes = (
        capacity("a", used_gpus=3, taints=(taint,)),
        capacity("b", host_memory_bytes=256 * GIB, source=CapacitySource.LABEL),
        CPU_NODE,
    )
    (pool,) = pools(nodes)
    assert pool.name == "nvidia-l40s-8"
    assert (pool.product, pool.gpus_per_node) == ("NVIDIA-L40S", 8)
    assert (pool.total_bytes, pool.nominal_bytes) == (45_455 * MIB, 46_068 * MIB)
    assert pool.compute_capability == (8, 9)
    assert pool.nodes == (PoolNode(name="a", free_gpus=5), PoolNode(name="b", free_gpus=8))
    assert pool.taints == (taint,)
    assert pool.host_memory_bytes == 256 * GIB
    assert pool.source is CapacitySource.LABEL
    assert pool.selector == PLATFORM | {"nvidia.com/gpu.product": "NVIDIA-L40S"}
    assert pool.selector_is_exact
    assert pool.other_products == ()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"ready": False}, "silent"),
        ({"schedulable": False}, "cordoned"),
        ({"allocatable_gpus": 0}, "nothing may be requested"),
        ({"devices": (device(healthy=False),) * 8}, "all broken"),
        ({"devices": ()}, "nothing known"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_node_that_offers_nothing_is_left_out(change, why):
    assert why
    assert shape([capacity("a", **change)]) == []
    assert shape([capacity("a", **change), capacity("b")]) == [("nvidia-l40s-8", 45_455, ["b"])]


@pytest.mark.parametrize(
    ("nodes", "want"),
    [
        pytest.param(
            [capacity("a"), capacity("b", "NVIDIA-L4")],
            [("nvidia-l4-8", 22_589, ["b"]), ("nvidia-l40s-8", 45_455, ["a"])],
            id="two products are two pools",
        ),
        pytest.param(
            [capacity("a"), capacity("b", count=4)],
            [("nvidia-l40s-4", 45_455, ["b"]), ("nvidia-l40s-8", 45_455, ["a"])],
            id="two counts are two pools",
        ),
        pytest.param(
            [sized("a", 45_455), sized("b", 45_000), sized("c", 45_900)],
            [("nvidia-l40s-8", 45_000, ["a", "b", "c"])],
            id="driver branches differ by less than 3 percent: the least of them",
        ),
        pytest.param(
            [sized("a", 45_455), sized("b", 45_455), sized("c", 22_700)],
            [("nvidia-l40s-8", 45_455, ["a", "b"]), ("nvidia-l40s-8-22g", 22_700, ["c"])],
            id="a node at half the size is a pool of its own and shrinks nobody",
        ),
        pytest.param(
            [sized("a", 45_455), sized("b", 45_455), sized("c", 68_000)],
            [("nvidia-l40s-8", 45_455, ["a", "b", "c"])],
            id="a node at more than its fleet counts as one of the fleet",
        ),
        pytest.param(
            [sized("a", 45_455), sized("b", 22_700)],
            [("nvidia-l40s-8", 45_455, ["a"]), ("nvidia-l40s-8-22g", 22_700, ["b"])],
            id="of two nodes nobody can say which lies: neither shrinks the other",
        ),
        pytest.param(
            [sized("a", 45_455), sized("b", 45_455), sized("c", 22_700), sized("d", 22_700)],
            [("nvidia-l40s-8", 22_700, ["a", "b", "c", "d"])],
            id="two nodes that agree are no lie: what no label separates takes the smaller",
        ),
        pytest.param(
            [bare("a"), bare("b"), bare("c", count=7)],
            [("nvidia-l40s-7", 45_455, ["c"]), ("nvidia-l40s-8", 45_455, ["a", "b"])],
            id="a node that tells of fewer GPUs takes none from the others",
        ),
        pytest.param(
            [sized("a", 45_455), sized("b", 45_455), bare("c", count=4, devices=HALVES)],
            [("nvidia-l40s-4", 22_700, ["c"]), ("nvidia-l40s-8", 45_455, ["a", "b"])],
            id="nor does one that tells of fewer and smaller ones",
        ),
        pytest.param(
            [sized("a", 45_455), sized("b", 45_455), bare("c", count=4, devices=DOUBLES)],
            [("nvidia-l40s-8", 45_455, ["a", "b", "c"])],
            id="one with fewer and larger ones counts as one of the fleet",
        ),
        pytest.param(
            [bare("a"), bare("b", "NVIDIA-L4")],
            [("nvidia-l4-8-mixed", 22_589, ["a", "b"])],
            id="two products without labels: one pool with the smaller bytes",
        ),
        pytest.param(
            [
                capacity("a", labels=gpu_labels() | {"kubernetes.io/arch": "arm64"}),
                capacity("b"),
            ],
            [("nvidia-l40s-8", 45_455, ["b"]), ("nvidia-l40s-8-arm64", 45_455, ["a"])],
            id="an image runs on one architecture",
        ),
        pytest.param(
            [capacity("a"), capacity("b", sharing="time-slicing", replicas_per_gpu=4)],
            [("nvidia-l40s-8", 45_455, ["a"]), ("nvidia-l40s-8-time-slicing-4", 45_455, ["b"])],
            id="shared GPUs are a pool of their own, when labels tell them apart",
        ),
    ],
)
def test_which_nodes_belong_together(nodes, want):
    labelled = [
        replace(
            node,
            labels={
                **node.labels,
                "nvidia.com/gpu.sharing-strategy": node.sharing,
            },
        )
        if node.labels.get("nvidia.com/gpu.product")
        else node
        for node in nodes
    ]
    assert shape(labelled) == want
    assert shape(reversed(labelled)) == want


@pytest.mark.parametrize(
    ("nodes", "want"),
    [
        pytest.param(
            [capacity("a"), capacity("b", "NVIDIA-L4")],
            {"nvidia.com/gpu.product": "NVIDIA-L40S"},
            id="the product is enough",
        ),
        pytest.param(
            [capacity("a"), capacity("b", count=4), capacity("c", "NVIDIA-L4")],
            {"nvidia.com/gpu.product": "NVIDIA-L40S", "nvidia.com/gpu.count": "8"},
            id="product and count",
        ),
        pytest.param(
            [
                capacity("a", labels=PLATFORM | {"node.kubernetes.io/instance-type": "x8"}),
                capacity(
                    "b", "NVIDIA-L4", labels=PLATFORM | {"node.kubernetes.io/instance-type": "y"}
                ),
                CPU_NODE,
            ],
            {"node.kubernetes.io/instance-type": "x8"},
            id="an instance type where nothing else is labelled",
        ),
        pytest.param(
            [
                capacity("a", labels=PLATFORM | {"shipfitter.dev/pool": "one"}),
                capacity("b", "NVIDIA-L4", labels=PLATFORM | {"shipfitter.dev/pool": "two"}),
            ],
            {"shipfitter.dev/pool": "one"},
            id="our own label",
        ),
        pytest.param(
            [capacity("a"), replace(CPU_NODE, labels=gpu_labels())],
            {"nvidia.com/gpu.product": "NVIDIA-L40S"},
            id="a node without GPUs that no label excludes does no harm",
        ),
        pytest.param(
            [
                capacity("a"),
                capacity(
                    "b", labels=gpu_labels() | {"nvidia.com/gpu.count": "7"}, schedulable=False
                ),
            ],
            {"nvidia.com/gpu.product": "NVIDIA-L40S"},
            id="a cordoned node of the same kind decides with: its selector outlives the cordon",
        ),
    ],
)
def test_the_shortest_selector(nodes, want):
    pool = next(
        pool for pool in pools(tuple(nodes)) if any(node.name == "a" for node in pool.nodes)
    )
    assert pool.selector == PLATFORM | want
    assert pool.selector_is_exact


@pytest.mark.parametrize(
    "nodes",
    [
        pytest.param([bare("a"), bare("b", "NVIDIA-L4")], id="two products"),
        pytest.param([sized("a", 45_455), sized("b", 22_700)], id="two sizes"),
        pytest.param([sized("a", 1), sized("b", 1), sized("c", 9)], id="one beyond its fleet"),
        pytest.param([bare("a"), bare("b", count=4)], id="two counts"),
        pytest.param(
            [capacity("a", devices=(device(),) * 4 + (device("NVIDIA-L4"),) * 4)],
            id="two products in one node",
        ),
    ],
)
def test_what_labels_cannot_select_is_marked(nodes):
    assert not any(pool.selector_is_exact for pool in pools(tuple(nodes)))


def test_a_bare_node_shrinks_no_fleet_its_pods_may_stray_onto():
    fleet = [capacity(f"h{number}", "NVIDIA-H100-80GB-HBM3") for number in range(2)]
    found = {pool.product: pool for pool in pools((*fleet, bare("a", "NVIDIA-L4", 2)))}
    assert found["NVIDIA-H100-80GB-HBM3"].total_bytes == 81_090 * MIB
    assert found["NVIDIA-H100-80GB-HBM3"].selector_is_exact
    assert not found["NVIDIA-L4"].selector_is_exact


def test_a_bare_node_of_a_newer_kind_than_the_fleet_is_sized_with_it():
    fleet = [capacity(f"h{number}", "NVIDIA-A100-SXM4-80GB") for number in range(2)]
    (pool,) = pools((*fleet, bare("a", "NVIDIA-L4", 2)))  # made for an L4, it may not run there
    assert (pool.total_bytes, pool.compute_capability) == (22_589 * MIB, (8, 0))


def test_a_cordoned_node_of_another_kind_marks_but_shrinks_nothing():
    (pool,) = pools((bare("a"), bare("b", "NVIDIA-L4", schedulable=False)))
    assert (pool.total_bytes, pool.selector_is_exact) == (45_455 * MIB, False)


def test_a_mixed_node_is_planned_for_its_smallest_gpu():
    devices = (device("NVIDIA-A100-80GB-PCIe"),) * 4 + (device("NVIDIA-L4"),) * 4
    mixed = capacity("a", devices=devices)
    found = {pool.name: pool for pool in pools((mixed, capacity("b", "NVIDIA-L4", 8)))}
    pool = found["nvidia-l4-8-mixed"]
    assert pool.total_bytes == 22_589 * MIB
    assert pool.other_products == ("NVIDIA-A100-80GB-PCIe",)
    assert pool.compute_capability == (8, 0)
    assert [node.name for node in found["nvidia-l4-8"].nodes] == ["b"]


def test_a_broken_gpu_takes_its_node_to_no_other_pool():
    broken = (device(),) * 7 + (device(healthy=False),)
    (pool,) = pools((capacity("a"), capacity("b", devices=broken, allocatable_gpus=7)))
    assert pool.gpus_per_node == 8
    assert [node.free_gpus for node in pool.nodes] == [8, 7]
    assert pool.replicas_that_fit(8) == 1


def test_one_strangers_gpu_is_not_free_and_takes_nothing_from_the_others():
    taken = (device(),) * 7 + (device(foreign_used_bytes=20 * GIB),)
    idle = [capacity(name) for name in "bcd"]
    (pool,) = pools((capacity("a", devices=taken), *idle))
    assert pool.foreign_used_bytes == 0
    assert [node.free_gpus for node in pool.nodes] == [7, 8, 8, 8]


def test_a_desktop_on_every_node_is_what_the_pool_has_less():
    screens = (device(foreign_used_bytes=512 * MIB), device())
    nodes = [capacity(name, devices=screens, allocatable_gpus=2) for name in "ab"]
    (pool,) = pools(tuple(nodes))
    assert pool.foreign_used_bytes == 512 * MIB
    assert pool.free_gpus == 4


def test_shared_gpus_are_counted_as_often_as_they_are_handed_out():
    (pool,) = pools(
        (
            capacity(
                "a",
                sharing="time-slicing",
                replicas_per_gpu=4,
                allocatable_gpus=32,
                used_gpus=2,
            ),
        )
    )
    assert (pool.gpus_per_node, pool.free_gpus, pool.replicas_per_gpu) == (8, 30, 4)


def test_slices_of_one_node_are_pools_that_only_their_resource_separates():
    labels = gpu_labels("NVIDIA-A100-SXM4-40GB", 1)
    whole = capacity("a", "NVIDIA-A100-SXM4-40GB", 1)
    small = device("NVIDIA-A100-SXM4-40GB", total_bytes=4864 * MIB, mig_profile="1g.5gb")
    sliced = capacity(
        "a",
        labels=labels,
        devices=(small,) * 7,
        allocatable_gpus=7,
        resource_name="nvidia.com/mig-1g.5gb",
    )
    got = pools((whole, sliced))
    assert [(pool.name, pool.resource_name, pool.mig_profile) for pool in got] == [
        ("nvidia-a100-sxm4-40gb-1", "nvidia.com/gpu", ""),
        ("nvidia-a100-sxm4-40gb-mig-1g-5gb-7", "nvidia.com/mig-1g.5gb", "1g.5gb"),
    ]
    assert all(pool.selector_is_exact for pool in got)


@pytest.mark.parametrize(
    ("linked", "want"),
    [([True, True, False], True), ([True, False], False), ([True], True)],
    ids=["most nodes say so", "half is not most", "the only one"],
)
def test_nvlink_is_what_most_nodes_say(linked, want):
    nodes = [capacity(f"n{i}", nvlink=nvlink) for i, nvlink in enumerate(linked)]
    assert pools(tuple(nodes))[0].nvlink is want


def test_five_thousand_nodes_of_twenty_kinds():
    products = ("NVIDIA-L40S", "NVIDIA-L4", "h100", "h200", "a100-80gb", "t4", "a10g", "b200")
    nodes = []
    for number in range(5000):
        product = products[number % 8]
        name = device(product).product
        nodes.append(
            capacity(f"n{number:04}", name, count=(1, 4, 8)[number % 3], used_gpus=number % 2)
        )
    got = pools(tuple(nodes))
    assert len(got) == 24
    assert sum(len(pool.nodes) for pool in got) == 5000
    assert all(pool.selector_is_exact for pool in got)
