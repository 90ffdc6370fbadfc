"""What befalls nodes for a while or for good, each story on nodes of its own and all at once."""

import pytest

from e2e.labs import LAB, Lab
from e2e.stories import A100, AT_ONCE, L4, L40S, says, serving, stays, uids, variant
from world import nvml
from world.controlplane import CommandError

pytestmark = [pytest.mark.plane, pytest.mark.timeout(600)]

PRODUCT = "nvidia.com/gpu.product"
STORIES = {
    name: Lab(name=name, product=product, spec={"resize": AT_ONCE, **spec})
    for name, product, spec in (
        ("swapped", L40S, {}),
        ("flapping", L40S, {}),
        ("driver", A100, {}),
        ("labels", L40S, {}),
        ("drained", L40S, {"replicas": 2}),  # one on each of two nodes
    )
}


@pytest.fixture(scope="module")
def served(world):
    """Every deployment serves, on measured nodes: the agents know them."""
    world.clear()
    for lab in STORIES.values():
        labels = {LAB: lab.name}
        world.add_gpu_node(lab.node, lab.product, 1, labels=labels)
        world.apply(lab.wish())
    world.add_gpu_node("drained-too", L40S, 1, labels={LAB: "drained"})
    world.eventually(lambda: all(map(world.ready, STORIES)), what="all serve", seconds=180)
    return world


def label(stage, node, **labels):
    stage.api.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": labels}})


def drain(stage, node, *, seconds=60):
    """As kubectl does it; whatever a budget protects comes later."""
    stage.emulator.cordon(node)
    stage.plane.kubectl(
        *("drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--force"),
        *("--pod-selector=shipfitter.dev/modeldeployment", f"--timeout={seconds}s"),
    )


def moved_to(stage, name, node):
    return stage.ready(name) and {p["spec"].get("nodeName") for p in stage.pods(name)} == {node}


def test_the_only_type_is_replaced_by_a_smaller_one(served):
    lab = STORIES["swapped"]
    before = variant(served, lab.name)
    served.add_gpu_node("swapped-small", L4, 1, labels={LAB: lab.name})
    assert stays(lambda: uids(serving(served, lab.name))), "a smaller one is no reason to move"
    drain(served, lab.node)
    served.remove_node(lab.node)
    served.eventually(lambda: moved_to(served, lab.name, "swapped-small"), what="it is on the L4")
    now = variant(served, lab.name)
    assert (before["gpuProduct"], now["gpuProduct"]) == (L40S, L4)
    assert now["maxModelLen"] < before["maxModelLen"]
    told = [e["message"] for e in served.objects("events") if e["reason"] == "Resized"]
    assert any("GPU 1 × NVIDIA-L40S → 1 × NVIDIA-L4" in message for message in told)


def test_a_node_that_flaps_rolls_nothing(served):
    lab = STORIES["flapping"]
    pods, plan = uids(served.pods(lab.name)), served.status(lab.name)["plan"]
    node = served.emulator.nodes[lab.node]
    for _ in range(3):
        node.set_ready(False)
        says(served, lab.name, "CapacityKnown", "NoGpuCapacity")
        node.set_ready(True)
        says(served, lab.name, "CapacityKnown", "GpusFound")
    served.eventually(lambda: served.ready(lab.name), what="it is Ready again")
    assert stays(lambda: uids(served.pods(lab.name))) == pods
    assert served.status(lab.name)["plan"] == plan


@pytest.mark.parametrize("percent", [-1, 1], ids=["a little less", "a little more"])
def test_another_driver_that_leaves_another_one_percent_rolls_nothing(served, percent):
    lab = STORIES["driver"]
    pods, plan = uids(served.pods(lab.name)), served.status(lab.name)["plan"]
    before = memory_of(served, lab.node)
    total = nvml.scenarios.resolve_product(lab.product).nvml_total_bytes // 2**20
    path = served.folder / f"{lab.node}.scenario"
    changed = total + total * percent // 100
    nvml.scenario(lab.product, 1, path=path, node=lab.node, total_mib=changed, driver="590.10")
    served.emulator.nodes[lab.node].reboot()
    served.eventually(lambda: memory_of(served, lab.node) != before, what="the agent reports it")
    assert stays(lambda: uids(served.pods(lab.name))) == pods
    assert served.status(lab.name)["plan"] == plan


def memory_of(stage, node):
    return stage.get("gpunode", node)["status"]["gpus"][0]["memory"]["totalBytes"]


def test_labels_that_vanish_for_a_while_roll_nothing(served):
    lab = STORIES["labels"]
    pods, plan = uids(served.pods(lab.name)), served.status(lab.name)["plan"]
    label(served, lab.node, **{PRODUCT: None, "nvidia.com/gpu.memory": None})
    assert stays(lambda: uids(serving(served, lab.name))) == pods
    label(served, lab.node, **{PRODUCT: L40S, "nvidia.com/gpu.memory": "46068"})
    says(served, lab.name, "Drifted", "PlanHolds")
    assert stays(lambda: uids(served.pods(lab.name))) == pods
    assert served.status(lab.name)["plan"] == plan


def test_a_drain_succeeds_while_a_replica_waits_for_a_gpu_but_not_of_the_last_that_serves(served):
    lab = STORIES["drained"]
    served.change(lab.name, {"replicas": 3})  # nobody has a third GPU
    says(served, lab.name, "Available", "WaitingForGpu")
    drain(served, lab.node)
    (left,) = serving(served, lab.name)
    assert left["spec"]["nodeName"] == "drained-too"
    with pytest.raises(CommandError, match="would violate the pod's disruption budget"):
        drain(served, "drained-too", seconds=5)
    assert uids(serving(served, lab.name)) == uids([left])
    served.emulator.cordon(lab.node, False)
    served.emulator.cordon("drained-too", False)
    served.eventually(lambda: len(serving(served, lab.name)) == 2, what="two serve again")
