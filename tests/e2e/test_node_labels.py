"""Nodes whose own labels do not tell them apart."""

import pytest

from e2e.stories import L4, L40S, LLAMA_8B, model_deployment, says, variant

pytestmark = pytest.mark.plane
BARE = {f"nvidia.com/gpu.{each}": "" for each in ("product", "count", "memory")}


@pytest.fixture
def bare(stage):
    """Two kinds of GPU on nodes that all look alike, as without gpu-feature-discovery."""
    stage.add_gpu_node("small", L4, 1, labels=BARE)
    stage.add_gpu_node("large", L40S, 1, labels=BARE)
    yield stage
    stage.upgrade({"capacity": {"labelNodes": False}})


def test_the_operator_may_label_nodes_that_nothing_else_tells_apart(bare):
    wish = model_deployment("llama", LLAMA_8B)
    wish["spec"]["gpus"] = {"products": [L40S]}
    bare.apply(wish)
    bare.eventually(
        lambda: (
            "capacity.labelNodes" in bare.condition("llama", "CapacityKnown").get("message", "")
        ),
        what="the condition says that no label tells the nodes apart",
    )
    assert L40S in says(bare, "llama", "Planned", "NoGpuCapacity")["message"]
    label = ("-o", "jsonpath={.metadata.labels.shipfitter\\.dev/pool}")
    assert bare.plane.kubectl("get", "node", "large", *label) == "", "not without the chart's word"

    bare.upgrade({"capacity": {"labelNodes": True}})
    bare.eventually(lambda: bare.ready("llama"), what="it serves on the larger GPU")
    assert bare.plane.kubectl("get", "node", "large", *label) == f"{L40S}-1"
    assert bare.plane.kubectl("get", "node", "small", *label) == f"{L4}-1"
    assert variant(bare, "llama")["gpuProduct"] == L40S
    assert "labelNodes" not in bare.condition("llama", "CapacityKnown")["message"]
