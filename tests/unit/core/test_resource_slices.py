"""ResourceSlices: what a DRA driver publishes, as devices and as capacity."""

import pytest

from builders_nodes import PLATFORM, gpu, gpunode, node
from builders_slices import (
    counter_set,
    gpu_device,
    mig_device,
    partitionable,
    slice_manifest,
    slices_of,
)
from shipfitter.core.capacity import CapacitySource
from shipfitter.core.claimable import claimables
from shipfitter.core.node_capacity import node_capacities, node_capacity
from shipfitter.core.resource_slices import ResourceSlice, current, parse_slice
from shipfitter.units import GIB, MIB

MAPPED = frozenset({"nvidia.com/gpu"})
DYNAMIC = {"sharedCounters": [counter_set(0)]}


@pytest.mark.parametrize(
    ("device", "want_mib", "want_product"),
    [
        pytest.param(
            gpu_device("gpu-0", "l40s"),
            45_455,
            "NVIDIA-L40S",
            id="a GPU less its product's reserve",
        ),
        pytest.param(
            gpu_device("gpu-0", "l40s") | {"capacity": {"memory": {"value": "49140Mi"}}},
            48_527,
            "NVIDIA-L40S",
            id="ECC off: more memory, the same reserve",
        ),
        pytest.param(
            gpu_device("gpu-0", "l40s") | {"capacity": {"memory": {"value": "69102Mi"}}},
            45_455,
            "NVIDIA-L40S",
            id="more than the product is sold with is not believed",
        ),
        pytest.param(
            gpu_device("gpu-0", "NVIDIA X900") | {"capacity": {"memory": {"value": "100000Mi"}}},
            99_100,
            "NVIDIA-X900",
            id="a product nobody knows: less 0.9 percent",
        ),
        pytest.param(
            gpu_device("gpu-0", "gb10"),
            512 * 1024,
            "NVIDIA-GB10",
            id="unified: the machine's memory",
        ),
        pytest.param(
            gpu_device("gpu-0", "NVIDIA X901", memoryType="unified"),
            512 * 1024,
            "NVIDIA-X901",
            id="unified by its own word",
        ),
        pytest.param(
            gpu_device("gpu-0", "NVIDIA X902"), None, None, id="no memory and no row: not known"
        ),
        pytest.param(
            {
                "name": "gpu-0",
                "attributes": {
                    "gpu.nvidia.com/type": {"string": "gpu"},
                    "gpu.nvidia.com/productName": {"string": "NVIDIA L4"},
                },
                "capacity": {"gpu.nvidia.com/memory": {"value": "23034Mi"}},
            },
            22_589,
            "NVIDIA-L4",
            id="attributes written with the driver's domain",
        ),
    ],
)
def test_a_gpu_of_a_slice(device, want_mib, want_product):
    raw = node(labels=PLATFORM, gpus=1)
    got = node_capacity(raw, None, 0, slices=slices_of("n1", [device]))
    assert [(d.total_bytes // MIB, d.product) for d in got.devices] == (
        [(want_mib, want_product)] if want_mib else []
    )
    if want_mib:
        assert got.source is CapacitySource.RESOURCE_SLICE


@pytest.mark.parametrize(
    ("labels", "measured", "want"),
    [
        pytest.param(
            {},
            gpunode(gpus=(gpu(),)),
            CapacitySource.MEASURED,
            id="a measurement is believed before a slice",
        ),
        pytest.param(
            {"nvidia.com/gpu.product": "NVIDIA-L40S", "nvidia.com/gpu.memory": "46068"},
            None,
            CapacitySource.RESOURCE_SLICE,
            id="a slice is believed before labels",
        ),
        pytest.param(
            {"node.kubernetes.io/instance-type": "g6e.2xlarge"},
            None,
            CapacitySource.RESOURCE_SLICE,
            id="and before the catalogue",
        ),
        pytest.param(
            {},
            gpunode("n9", gpus=(gpu(),)),
            CapacitySource.RESOURCE_SLICE,
            id="another machine's measurement is none",
        ),
    ],
)
def test_the_order_of_trust(labels, measured, want):
    raw = node(labels=PLATFORM | labels, gpus=1)
    got = node_capacity(raw, measured, 0, slices=slices_of("n1", [gpu_device("gpu-0")]))
    assert got.source is want


def test_slices_of_other_drivers_and_of_no_one_node_say_nothing():
    manifest = slice_manifest("n1", [gpu_device("gpu-0")])["spec"]
    assert parse_slice(manifest | {"driver": "tpu.google.com"}) == ResourceSlice()
    assert parse_slice({**manifest, "nodeName": None, "allNodes": True}) == ResourceSlice()
    vfio = slices_of("n1", [gpu_device("gpu-vfio-0", type="vfio")])
    assert vfio[0].devices == ()


def test_only_the_newest_generation_counts_and_only_whole():
    pool = {"name": "n1", "resourceSliceCount": 2}

    def part(generation, name):
        spec = slice_manifest("n1", [gpu_device(name)], pool=pool | {"generation": generation})
        return parse_slice(spec["spec"])

    old = (part(1, "gpu-0"), part(1, "gpu-1"))
    assert current(old) == old
    assert current((*old, part(2, "gpu-0"))) == (), "a newer one is being written"
    new = (part(2, "gpu-0"), part(2, "gpu-1"))
    assert current((*old, *new)) == new


def test_a_tainted_device_is_there_but_not_for_use():
    broken = gpu_device("gpu-1") | {
        "taints": [{"key": "gpu.nvidia.com/xid", "effect": "NoSchedule"}]
    }
    told = gpu_device("gpu-2") | {"taints": [{"key": "gpu.nvidia.com/unmonitored", "effect": ""}]}
    slices = slices_of("n1", [gpu_device("gpu-0"), broken, told])
    got = node_capacity(node(labels=PLATFORM, gpus=3), None, 0, slices=slices)
    assert [device.healthy for device in got.devices] == [True, False, True]
    (claimed,) = node_capacities(node(labels=PLATFORM), None, {}, slices=slices)
    assert (len(claimed.devices), claimed.allocatable_gpus) == (3, 2)


MIXED = (
    gpu_device("gpu-0", "l4"),
    gpu_device("gpu-1", "l4"),
    gpu_device("gpu-2", "a100-80gb-pcie"),
)


def offers(capacities):
    return [
        (
            each.resource_name,
            len(each.devices),
            each.allocatable_gpus,
            each.used_gpus,
            each.by_claim,
        )
        for each in capacities
    ]


def test_on_a_mixed_node_a_claim_asks_for_one_kind():
    raw = node(labels=PLATFORM)
    got = node_capacities(raw, None, {}, slices=slices_of("n1", MIXED), taken={"gpu-1"})
    assert offers(got) == [
        ("gpu.nvidia.com/NVIDIA-A100-80GB-PCIe", 1, 1, 0, True),
        ("gpu.nvidia.com/NVIDIA-L4", 2, 2, 1, True),
    ]
    assert {each.source for each in got} == {CapacitySource.RESOURCE_SLICE}


def test_a_device_class_that_stands_for_the_resource_offers_any_of_them():
    raw = node(labels=PLATFORM)
    slices = slices_of("n1", MIXED)
    got = node_capacities(raw, None, {}, slices=slices, taken={"gpu-1"}, mapped=MAPPED)
    assert offers(got)[0] == ("nvidia.com/gpu", 3, 3, 1, False)
    assert len(got) == 3


def test_what_a_plugin_hands_out_is_offered_once():
    slices = slices_of("n1", [gpu_device("gpu-0"), gpu_device("gpu-1")])
    got = node_capacities(node(labels=PLATFORM, gpus=2), None, {}, slices=slices, mapped=MAPPED)
    assert offers(got) == [("nvidia.com/gpu", 2, 2, 0, False)]


def test_devices_the_agent_measured_have_its_bytes():
    measured = gpunode(
        gpus=(
            gpu("l4", uuid="GPU-gpu-0", memory={"reservedBytes": 500 * MIB}),
            gpu("l4", uuid="GPU-gpu-1", health={"state": "Unhealthy", "reason": "Xid79"}),
            gpu("a100-80gb-pcie", uuid="GPU-gpu-2"),
        )
    )
    got = node_capacities(node(labels=PLATFORM), measured, {}, slices=slices_of("n1", MIXED))
    of_l4 = got[1]
    assert of_l4.source is CapacitySource.MEASURED
    assert [d.total_bytes // MIB for d in of_l4.devices] == [23_034 - 500, 22_589]
    assert [d.healthy for d in of_l4.devices] == [True, False]


def test_fixed_partitions_stand_behind_their_resource_and_their_claims():
    devices = [mig_device("gpu-0-mig-1", "3g.20gb", 19_968), mig_device("m2", "1g.5gb", 4_864)]
    slices = slices_of("n1", devices)
    plugin = node(labels=PLATFORM, resources={"nvidia.com/mig-3g.20gb": "1"})
    (by_plugin,) = node_capacities(plugin, None, {}, slices=slices)
    assert [(d.mig_profile, d.total_bytes // MIB) for d in by_plugin.devices] == [
        ("3g.20gb", 19_968)
    ]
    assert offers(node_capacities(node(labels=PLATFORM), None, {}, slices=slices)) == [
        ("mig.nvidia.com/NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", 1, 1, 0, True),
        ("mig.nvidia.com/NVIDIA-A100-SXM4-40GB-MIG-3g.20gb", 1, 1, 0, True),
    ]


@pytest.mark.parametrize(
    ("taken", "want"),
    [
        pytest.param(
            (),
            {"gpu": (1, 0, 1), "1g.5gb": (7, 0, 7), "2g.10gb": (3, 0, 3), "3g.20gb": (2, 0, 2)},
            id="an idle GPU: whole, or so many of each",
        ),
        pytest.param(
            ("gpu-0",),
            {"gpu": (1, 1, 0), "1g.5gb": (7, 0, 0), "2g.10gb": (3, 0, 0), "3g.20gb": (2, 0, 0)},
            id="taken whole: no partition is left",
        ),
        pytest.param(
            ("gpu-0-mig-3g.20gb-0",),
            {"gpu": (1, 0, 0), "1g.5gb": (7, 0, 3), "2g.10gb": (3, 0, 1), "3g.20gb": (2, 1, 1)},
            id="half of it taken",
        ),
    ],
)
def test_partitions_that_could_be_made_share_their_gpu(taken, want):
    slices = slices_of("n1", partitionable(), **DYNAMIC)
    got = {
        (each.devices[0].mig_profile or "gpu"): (len(each.devices), each.taken, each.left)
        for each in claimables(slices, taken)
    }
    assert got == want


def test_partitions_that_could_be_made_are_none_a_plugin_hands_out():
    slices = slices_of("n1", partitionable(), **DYNAMIC)
    got = node_capacity(node(labels=PLATFORM, gpus=1), None, 0, slices=slices)
    assert [device.mig_profile for device in got.devices] == [""]


def test_unified_memory_keeps_what_the_host_keeps():
    raw = node(labels=PLATFORM, memory="500Gi")
    (got,) = node_capacities(raw, None, {}, slices=slices_of("n1", [gpu_device("gpu-0", "gb10")]))
    (device,) = got.devices
    assert (device.total_bytes, device.foreign_used_bytes) == (512 * GIB, 12 * GIB)


@pytest.mark.parametrize(
    ("islands", "want"),
    [
        pytest.param([[2, 3]], True, id="all of the kind in one island"),
        pytest.param([[0, 1]], False, id="the others are"),
    ],
)
def test_nvlink_of_one_kind(islands, want):
    products = ("l4", "l4", "a100-80gb", "a100-80gb")
    measured = gpunode(
        gpus=tuple(gpu(p, uuid=f"GPU-gpu-{n}") for n, p in enumerate(products)),
        nvlinkIslands=islands,
    )
    slices = slices_of("n1", [gpu_device(f"gpu-{n}", p) for n, p in enumerate(products)])
    got = node_capacities(node(labels=PLATFORM), measured, {}, slices=slices)
    assert got[0].devices[0].product == "NVIDIA-A100-SXM4-80GB"
    assert got[0].nvlink is want
