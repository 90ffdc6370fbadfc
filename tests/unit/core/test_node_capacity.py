"""A node's capacity: who is believed, and how far."""

from dataclasses import replace

import pytest

from builders_nodes import PLATFORM, device, gpu, gpu_labels, gpunode, node
from shipfitter.core.capacity import CapacitySource, Taint
from shipfitter.core.node_capacity import gpu_resources, node_capacities, node_capacity
from shipfitter.core.quantities import whole
from shipfitter.units import GIB, MIB

LABELLED = gpu_labels("NVIDIA-L40S", 8)


@pytest.mark.parametrize(
    ("raw", "measured", "want_source", "want_mib", "want_count"),
    [
        pytest.param(
            node(labels=LABELLED, gpus=8),
            gpunode(gpus=(gpu(memory={"reservedBytes": 600 * MIB}),) * 8),
            CapacitySource.MEASURED,
            46_068 - 600,
            8,
            id="the agent's measurement comes first",
        ),
        pytest.param(
            node(labels=LABELLED, gpus=8),
            None,
            CapacitySource.LABEL,
            45_455,
            8,
            id="labels without an agent: their memory less the product's reserve",
        ),
        pytest.param(
            node(labels=gpu_labels("NVIDIA-X900", 2) | {"nvidia.com/gpu.memory": "100000"}, gpus=2),
            None,
            CapacitySource.LABEL,
            99_100,
            2,
            id="labels of a product nobody knows: less 0.9 percent",
        ),
        pytest.param(
            node(labels=PLATFORM | {"cloud.google.com/gke-accelerator": "nvidia-l4"}, gpus=2),
            None,
            CapacitySource.CATALOGUE,
            22_589,
            2,
            id="GKE's accelerator label and the catalogue; allocatable counts",
        ),
        pytest.param(
            node(
                labels=PLATFORM
                | {
                    "karpenter.k8s.aws/instance-gpu-name": "a100",
                    "karpenter.k8s.aws/instance-gpu-count": "8",
                    "karpenter.k8s.aws/instance-gpu-memory": "81920",
                },
                gpus=8,
            ),
            None,
            CapacitySource.CATALOGUE,
            81_152,
            8,
            id="Karpenter's name stands for two cards; its memory tells which",
        ),
        pytest.param(
            node(labels=PLATFORM | {"node.kubernetes.io/instance-type": "p5.48xlarge"}, gpus=8),
            None,
            CapacitySource.CATALOGUE,
            81_090,
            8,
            id="the instance type and the catalogue",
        ),
        pytest.param(
            node(
                labels=PLATFORM
                | {
                    "gpu.nvidia.com/model": "H100_NVLINK_80GB",
                    "gpu.nvidia.com/count": "8",
                    "node.kubernetes.io/instance-type": "unheard-of",
                },
                gpus=8,
            ),
            None,
            CapacitySource.CATALOGUE,
            81_090,
            8,
            id="CoreWeave's model label",
        ),
        pytest.param(
            node(labels=PLATFORM | {"aliyun.accelerator/nvidia_name": "NVIDIA-A10"}, gpus=1),
            None,
            CapacitySource.CATALOGUE,
            22_589,
            1,
            id="Alibaba Cloud's accelerator label",
        ),
        pytest.param(
            node(labels=PLATFORM | {"doks.digitalocean.com/gpu-model": "h100"}, gpus=1),
            None,
            CapacitySource.CATALOGUE,
            81_090,
            1,
            id="DigitalOcean's model label",
        ),
        pytest.param(
            node(
                labels=PLATFORM | {"machine.cluster.vke.volcengine.com/gpu-name": "Tesla-T4"},
                gpus=1,
            ),
            None,
            CapacitySource.CATALOGUE,
            14_950,
            1,
            id="Volcengine's name label",
        ),
        pytest.param(
            node(labels=PLATFORM | {"skypilot.co/accelerator": "a100-80gb"}, gpus=1),
            None,
            CapacitySource.CATALOGUE,
            81_152,
            1,
            id="SkyPilot's accelerator label",
        ),
        pytest.param(
            node(labels=PLATFORM | {"accelerator": "nvidia-tesla-v100"}, gpus=1),
            None,
            CapacitySource.CATALOGUE,
            16_151,
            1,
            id="the label that clusters had first",
        ),
        pytest.param(
            node(
                labels=PLATFORM
                | {
                    "cloud.google.com/gke-accelerator": "nvidia-tesla-a100",
                    "cloud.google.com/gke-accelerator-count": "1",
                    "cloud.google.com/gke-gpu-partition-size": "1g.5gb",
                },
                gpus=7,
            ),
            None,
            CapacitySource.CATALOGUE,
            4_864,
            7,
            id="GKE hands MIG slices out as plain GPUs",
        ),
        pytest.param(
            node(
                labels=PLATFORM
                | {
                    "cloud.google.com/gke-accelerator": "nvidia-tesla-a100",
                    "cloud.google.com/gke-gpu-partition-size": "9g.99gb",
                },
                gpus=7,
            ),
            None,
            CapacitySource.CATALOGUE,
            0,
            0,
            id="a partition the catalogue does not know is not the whole card",
        ),
        pytest.param(
            node(labels=LABELLED, gpus=8),
            gpunode(gpus=(gpu(memory={"totalBytes": 69_102 * MIB}),) * 8),
            CapacitySource.MEASURED,
            45_455,
            8,
            id="half as much again as the product is sold with is clamped",
        ),
        pytest.param(
            node(labels=LABELLED, gpus=8),
            gpunode(gpus=(gpu(memory={"totalBytes": 49_140 * MIB}),) * 8),
            CapacitySource.MEASURED,
            49_140 - 613,
            8,
            id="ECC off is plausible",
        ),
        pytest.param(
            node(labels=gpu_labels("NVIDIA-X900", 1) | {"nvidia.com/gpu.memory": "40000"}, gpus=1),
            gpunode(
                gpus=(
                    gpu(memory={"totalBytes": 80_000 * MIB, "reservedBytes": 400 * MIB})
                    | {"product": "NVIDIA-X900"},
                )
            ),
            CapacitySource.MEASURED,
            39_600,
            1,
            id="a product nobody knows is held to its label",
        ),
        pytest.param(
            node(labels=LABELLED, gpus=8),
            gpunode(gpus=(gpu("NVIDIA-L4"),) * 8),
            CapacitySource.LABEL,
            45_455,
            8,
            id="an agent that names another product than the label is not believed",
        ),
        pytest.param(
            node(labels=LABELLED, gpus=8),
            gpunode("n9", gpus=(gpu(),) * 4),
            CapacitySource.LABEL,
            45_455,
            8,
            id="a measurement of another machine of that name is not this one's",
        ),
        pytest.param(
            node(labels=LABELLED, gpus=8),
            gpunode(gpus=(), conditions=[{"type": "NVMLReady", "status": "False"}]),
            CapacitySource.LABEL,
            45_455,
            8,
            id="an agent without a driver leaves it to the labels",
        ),
        pytest.param(
            node(labels=LABELLED, gpus=8),
            gpunode(gpus=(gpu(),) * 8, conditions=[{"type": "NVMLReady", "status": "False"}]),
            CapacitySource.STALE,
            45_455,
            8,
            id="a driver that went away: the measurement of this boot stays, marked",
        ),
        pytest.param(
            node(labels=LABELLED, gpus=8),
            gpunode(
                gpus=(gpu(memory={"reservedBytes": 20_000 * MIB}),) * 8,
            ),
            CapacitySource.MEASURED,
            45_455,
            8,
            id="no driver keeps half a card: the product's reserve instead",
        ),
        pytest.param(
            node(labels=LABELLED, gpus=8),
            gpunode(gpus=(gpu(memory={"totalBytes": "lots", "reservedBytes": -1}),) * 8),
            CapacitySource.MEASURED,
            45_455,
            8,
            id="nonsense for bytes: the product's",
        ),
    ],
)
def test_who_is_believed(raw, measured, want_source, want_mib, want_count):
    got = node_capacity(raw, measured, 0)
    assert got.source is want_source
    assert [device.total_bytes // MIB for device in got.devices] == [want_mib] * want_count


@pytest.mark.parametrize(
    ("gpus", "want"),
    [
        pytest.param((gpu(),) * 8, "", id="all can be"),
        pytest.param(
            (gpu(), gpu(memory={"totalBytes": 69_102 * MIB})),
            "its agent tells 67.5 GiB of NVIDIA-L40S, which is sold with 48.0 GiB: taken for that",
            id="more than the card is sold with",
        ),
        pytest.param(
            (gpu("NVIDIA-L4"),) * 8,
            "its agent tells of NVIDIA-L4, its label of NVIDIA-L40S: the label is believed",
            id="other GPUs than the label",
        ),
    ],
)
def test_what_is_not_believed_is_told(gpus, want):
    got = node_capacity(node(labels=LABELLED, gpus=8), gpunode(gpus=gpus), 0)
    assert got.remark == want


@pytest.mark.parametrize(
    ("change", "want"),
    [
        pytest.param({}, CapacitySource.STALE, id="the same boot and driver: in force, marked"),
        pytest.param({"bootId": "boot-0"}, CapacitySource.LABEL, id="booted since: not in force"),
        pytest.param(
            {"driver": {"version": "570.1"}}, CapacitySource.LABEL, id="another driver by now"
        ),
    ],
)
def test_a_silent_agents_measurement(change, want):
    labels = LABELLED | {"nvidia.com/cuda.driver-version.full": "580.95.05"}
    measured = gpunode(gpus=(gpu(),) * 8, **change)
    assert node_capacity(node(labels=labels, gpus=8), measured, 0, stale=True).source is want


def test_what_the_user_declares_is_believed_last():
    declared = replace(device("NVIDIA-L4"), product="Homemade")
    silent = node(gpus=2)
    got = node_capacity(silent, None, 0, declared=declared)
    assert (got.source, got.devices) == (CapacitySource.DECLARED, (declared,) * 2)
    assert node_capacity(silent, None, 0).devices == ()
    labelled = node_capacity(node(labels=LABELLED, gpus=8), None, 0, declared=declared)
    assert labelled.source is CapacitySource.LABEL


@pytest.mark.parametrize(
    "gpus",
    [
        pytest.param(
            (gpu(), gpu(health={"state": "Unhealthy", "reason": "GpuIsLost"})), id="a lost GPU"
        ),
        pytest.param(
            (gpu(), gpu(health={"state": "Unhealthy", "reason": "ComputeModeProhibited"})),
            id="a GPU closed to programs",
        ),
    ],
)
def test_unhealthy_devices_are_there_but_not_for_use(gpus):
    got = node_capacity(node(labels=LABELLED, gpus=2), gpunode(gpus=gpus), 0)
    assert [device.healthy for device in got.devices] == [True, False]


MIG_LABELS = gpu_labels("NVIDIA-A100-SXM4-40GB", 2) | {
    "nvidia.com/mig-3g.20gb.count": "2",
    "nvidia.com/mig-3g.20gb.memory": "19968",
    "nvidia.com/mig-3g.20gb.product": "NVIDIA-A100-SXM4-40GB-MIG-3g.20gb",
}


def sliced(*profiles_mib):
    slices = [
        {"uuid": f"MIG-{number}", "profile": profile, "memoryBytes": mib * MIB}
        for number, (profile, mib) in enumerate(profiles_mib)
    ]
    return gpu("NVIDIA-A100-SXM4-40GB", migEnabled=True, migDevices=slices)


def test_mixed_mig_gives_one_capacity_for_each_resource_and_never_the_parent():
    raw = node(
        labels=MIG_LABELS,
        gpus=1,
        resources={"nvidia.com/mig-3g.20gb": "1", "nvidia.com/mig-1g.5gb": "2"},
    )
    parts = sliced(("3g.20gb", 19_968), ("1g.5gb", 4_864), ("1g.5gb", 4_864))
    measured = gpunode(gpus=(gpu("NVIDIA-A100-SXM4-40GB"), parts))
    got = node_capacities(raw, measured, {"nvidia.com/mig-1g.5gb": 1})
    assert [
        (c.resource_name, [d.total_bytes // MIB for d in c.devices], c.used_gpus) for c in got
    ] == [
        ("nvidia.com/gpu", [40_438], 0),
        ("nvidia.com/mig-1g.5gb", [4_864, 4_864], 1),
        ("nvidia.com/mig-3g.20gb", [19_968], 0),
    ]


def test_slices_whose_memory_no_label_tells_have_the_catalogues():
    labels = PLATFORM | {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB"}
    raw = node(labels=labels, resources={"nvidia.com/mig-1g.5gb.me": "1"})
    (got,) = node_capacities(raw, None, {})
    assert got.source is CapacitySource.CATALOGUE
    assert [device.total_bytes // MIB for device in got.devices] == [4_864]


def test_the_single_mig_strategy_hands_slices_out_as_gpus():
    parts = sliced(*[("1g.5gb", 4_864)] * 7)
    got = node_capacity(node(labels=PLATFORM, gpus=14), gpunode(gpus=(parts, parts)), 0)
    assert [device.mig_profile for device in got.devices] == ["1g.5gb"] * 14


def test_mig_slices_an_unprivileged_agent_cannot_see_come_from_labels():
    blind = gpunode(gpus=(gpu("NVIDIA-A100-SXM4-40GB", migEnabled=True, memory={}),) * 2)
    raw = node(labels=MIG_LABELS, resources={"nvidia.com/mig-3g.20gb": "2"})
    (got,) = node_capacities(raw, blind, {})
    assert got.source is CapacitySource.LABEL
    assert [(d.mig_profile, d.total_bytes // MIB) for d in got.devices] == [("3g.20gb", 19_968)] * 2


def test_a_driver_may_name_a_profile_a_little_differently():
    measured = gpunode(gpus=(sliced(("3g.19gb", 19_968)),))
    (got,) = node_capacities(node(resources={"nvidia.com/mig-3g.20gb": "1"}), measured, {})
    assert got.devices[0].total_bytes == 19_968 * MIB


def test_slices_nobody_describes_are_unknown():
    raw = node(labels=PLATFORM, resources={"nvidia.com/mig-all.new": "2"})
    (got,) = node_capacities(raw, gpunode(gpus=(sliced(("1g.5gb", 4_864)),)), {})
    assert (got.devices, got.allocatable_gpus) == ((), 2)


def test_slices_of_a_product_nobody_knows_have_the_bytes_they_tell():
    parts = sliced(("all.new", 9_000)) | {"product": "NVIDIA-X900", "computeCapability": "14.2"}
    (got,) = node_capacities(
        node(resources={"nvidia.com/mig-all.new": "1"}), gpunode(gpus=(parts,)), {}
    )
    assert [(d.total_bytes // MIB, d.compute_capability) for d in got.devices] == [(9_000, (14, 2))]


@pytest.mark.parametrize(
    ("labels", "want"),
    [
        pytest.param(LABELLED, ("none", 1), id="exclusive"),
        pytest.param(
            LABELLED
            | {
                "nvidia.com/gpu.sharing-strategy": "time-slicing",
                "nvidia.com/gpu.replicas": "4",
            },
            ("time-slicing", 4),
            id="time-slicing by the device plugin",
        ),
        pytest.param(
            LABELLED
            | {"nvidia.com/gpu.product": "NVIDIA-L40S-SHARED", "nvidia.com/gpu.replicas": "2"},
            ("time-slicing", 2),
            id="only the suffix tells",
        ),
        pytest.param(
            LABELLED | {"nvidia.com/gpu.sharing-strategy": "mps", "nvidia.com/gpu.replicas": "10"},
            ("mps", 10),
            id="MPS",
        ),
        pytest.param(
            LABELLED | {"nvidia.com/gpu.sharing-strategy": "none", "nvidia.com/gpu.replicas": "5"},
            ("none", 1),
            id="replicas that are none",
        ),
        pytest.param(
            PLATFORM
            | {
                "cloud.google.com/gke-accelerator": "nvidia-l4",
                "cloud.google.com/gke-gpu-sharing-strategy": "time-sharing",
                "cloud.google.com/gke-max-shared-clients-per-gpu": "3",
            },
            ("time-slicing", 3),
            id="GKE's labels",
        ),
    ],
)
def test_sharing(labels, want):
    got = node_capacity(node(labels=labels, gpus=8), gpunode(gpus=(gpu(),) * 8), 0)
    assert (got.sharing, got.replicas_per_gpu) == want
    if "nvidia.com/gpu.product" in labels:
        assert len(got.devices) == 8
        assert got.devices[0].product == "NVIDIA-L40S"


def test_a_renamed_shared_resource_is_found():
    raw = node(
        labels=LABELLED | {"nvidia.com/gpu.replicas": "2"},
        resources={"nvidia.com/gpu.shared": "16", "nvidia.com/gpu": "0"},
    )
    got = node_capacity(raw, None, 3)
    assert (got.resource_name, got.allocatable_gpus, got.sharing) == (
        "nvidia.com/gpu.shared",
        16,
        "time-slicing",
    )


def test_unified_memory_is_the_hosts_and_what_the_kubelet_keeps_is_taken():
    unified = {"kind": "unified", "totalBytes": 120 * GIB, "reservedBytes": 0}
    raw = node(gpus=1, memory="110Gi")
    (got,) = node_capacity(raw, gpunode(gpus=(gpu("NVIDIA-GB10", memory=unified),)), 0).devices
    assert got.unified
    assert (got.total_bytes, got.foreign_used_bytes) == (120 * GIB, 10 * GIB)


def test_unified_memory_without_a_figure_is_the_hosts_too():
    labels = PLATFORM | {"nvidia.com/gpu.product": "NVIDIA-GB10", "nvidia.com/gpu.count": "1"}
    got = node_capacity(node(labels=labels, gpus=1, memory="500Gi"), None, 0)
    assert got.source is CapacitySource.CATALOGUE
    assert got.devices[0].total_bytes == 512 * GIB


@pytest.mark.parametrize(
    ("islands", "want"),
    [
        pytest.param([[0, 1]], True, id="one island holds both"),
        pytest.param([], False, id="measured without NVLink"),
        pytest.param([[0], [1]], False, id="each alone"),
    ],
)
def test_nvlink_as_measured(islands, want):
    measured = gpunode(gpus=(gpu("h100"), gpu("h100")), nvlinkIslands=islands)
    assert node_capacity(node(gpus=2), measured, 0).nvlink is want


def test_nvlink_by_the_catalogue():
    types = {"p5.48xlarge": True, "g6e.48xlarge": False, "p5.4xlarge": False}
    for name, want in types.items():
        labels = PLATFORM | {"node.kubernetes.io/instance-type": name}
        assert node_capacity(node(labels=labels, gpus=8), None, 0).nvlink is want


@pytest.mark.parametrize(
    ("change", "want_ready", "want_schedulable"),
    [
        pytest.param({}, True, True, id="a node at work"),
        pytest.param({"spec": {"unschedulable": True}}, True, False, id="cordoned"),
        pytest.param(
            {
                "spec": {
                    "taints": [{"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}]
                }
            },
            True,
            False,
            id="under pressure",
        ),
        pytest.param(
            {"spec": {"taints": [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]}},
            True,
            False,
            id="about to be removed",
        ),
        pytest.param(
            {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}},
            False,
            True,
            id="silent",
        ),
    ],
)
def test_what_takes_pods(change, want_ready, want_schedulable):
    raw = node(labels=LABELLED, gpus=8)
    raw["spec"] |= change.get("spec", {})
    raw["status"] |= change.get("status", {})
    got = node_capacity(raw, None, 0)
    assert (got.ready, got.schedulable) == (want_ready, want_schedulable)


def test_a_node_being_deleted_takes_no_pods():
    raw = node(labels=LABELLED, gpus=8)
    raw["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert not node_capacity(raw, None, 0).schedulable


def test_taints_that_can_be_tolerated_are_kept():
    taints = [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]
    got = node_capacity(node(labels=LABELLED, gpus=8, taints=taints), None, 0)
    assert got.taints == (Taint(key="nvidia.com/gpu", value="present"),)
    assert got.schedulable


def test_a_node_without_gpus_offers_nothing():
    got = node_capacity(node(), None, 0)
    assert (got.devices, got.allocatable_gpus) == ((), 0)
    assert gpu_resources(node()) == ("nvidia.com/gpu",)


def test_an_empty_object_is_no_error():
    got = node_capacity({}, {}, 0)
    assert (got.name, got.devices, got.ready) == ("", (), False)


@pytest.mark.parametrize(
    ("quantity", "want"),
    [("8", 8), (8, 8), ("2Ki", 2048), ("1.5Gi", 3 * GIB // 2), ("1e2", 100), ("-1", -1), ("", 0)],
)
def test_whole(quantity, want):
    assert whole(quantity) == want


@pytest.mark.parametrize(
    ("gpus", "conditions", "allocatable", "want"),
    [
        pytest.param(2, [], 2, ("none", 1), id="as many as there are"),
        pytest.param(2, [], 8, ("time-slicing", 4), id="four times as many"),
        pytest.param(2, [], 5, ("none", 1), id="no whole number of copies"),
        pytest.param(2, [], 1, ("none", 1), id="fewer, one being sick"),
        pytest.param(
            2,
            [{"type": "NVMLReady", "status": "True", "reason": "SomeGpusHidden"}],
            4,
            ("none", 1),
            id="the agent does not see all of them",
        ),
    ],
)
def test_gpus_that_are_shared_though_no_label_says_so(gpus, conditions, allocatable, want):
    found = node_capacity(
        node(labels=PLATFORM, gpus=allocatable),
        gpunode(gpus=(gpu(),) * gpus, conditions=conditions),
        used_gpus=0,
    )
    assert (found.sharing, found.replicas_per_gpu) == want
