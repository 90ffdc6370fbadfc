"""Dynamic resource allocation on the real scheduler: the right device, also on mixed nodes."""

import pytest

from builders_slices import counter_set, partitionable, slice_manifest
from e2e.claims import (
    add_dra_node,
    claims_of,
    device_class,
    devices_of,
    published,
    templates_of,
)
from e2e.stories import LLAMA_8B, gpus_of, model_deployment, says, serve, serving, variant
from shipfitter.units import MIB
from world.stage import Stage

pytestmark = pytest.mark.plane
QWEN_06B = "hf://Qwen/Qwen3-0.6B"
BY_CLAIM = {"allocation": "DRA"}
GPUS = device_class("gpu.nvidia.com", "gpu")


def held(stage: Stage, name: str) -> list[tuple[str, str]]:
    return [device for claim in claims_of(stage, name) for device in devices_of(claim)]


def test_on_a_mixed_node_the_pod_gets_the_gpu_that_was_planned(stage):
    products = ("l4", "gb10", "l40s")  # the small one first, and one that publishes no memory
    slice_ = add_dra_node(stage, "mixed-1", products, engines_find="l40s")
    with published(stage, GPUS, slice_):
        serve(stage, "llama", LLAMA_8B, gpus={**BY_CLAIM, "products": ["l40s"]})
        planned = variant(stage, "llama")
        assert (planned["gpuProduct"], planned["capacitySource"]) == (
            "NVIDIA-L40S",
            "ResourceSlice",
        )
        (pod,) = serving(stage, "llama")
        assert pod["spec"]["nodeName"] == "mixed-1"
        assert "nvidia.com/gpu" not in pod["spec"]["containers"][0]["resources"].get("limits", {})
        assert held(stage, "llama") == [("mixed-1", "gpu-2")]
        serve(stage, "qwen", QWEN_06B, gpus={**BY_CLAIM, "products": ["l4"]})
        assert held(stage, "qwen") == [("mixed-1", "gpu-0")]
        for name in ("llama", "qwen"):
            stage.delete("modeldeployment", name)
        stage.eventually(lambda: not claims_of(stage, "llama"), what="claims go with their pods")


def test_what_another_holds_is_not_planned_with(stage):
    slice_ = add_dra_node(stage, "dra-1", ("l40s",), engines_find="l40s")
    with published(stage, GPUS, slice_):
        serve(stage, "first", LLAMA_8B, gpus=BY_CLAIM)
        stage.apply(model_deployment("second", LLAMA_8B, gpus=BY_CLAIM))
        says(stage, "second", "Available", "WaitingForGpu")
        stage.delete("modeldeployment", "first")
        stage.eventually(lambda: stage.ready("second"), what="the GPU is free again")
        assert held(stage, "second") == [("dra-1", "gpu-0")]


def test_another_plan_has_another_template_and_the_old_one_goes(stage):
    slice_ = add_dra_node(stage, "dra-1", ("l40s", "l40s"), engines_find="l40s")
    with published(stage, GPUS, slice_):
        serve(stage, "llama", LLAMA_8B, gpus=BY_CLAIM)
        (before,) = templates_of(stage, "llama")
        stage.change("llama", {"gpus": {"tensorParallelSize": 2}})

        def replaced():
            return stage.ready("llama") and templates_of(stage, "llama") not in ([], [before])

        stage.eventually(replaced, what="it serves on two GPUs")
        stage.eventually(
            lambda: before not in templates_of(stage, "llama"), what="the old template is gone"
        )
        assert len(held(stage, "llama")) == 2


def test_a_partition_is_made_for_the_pod_and_the_rest_stays_for_others(stage):
    half_bytes = 19_968 * MIB
    add_dra_node(stage, "mig-1", (), engines_find="a100-40gb", usable_bytes=half_bytes)
    pool = {"name": "mig-1", "generation": 1, "resourceSliceCount": 2}
    parts = [each for each in partitionable()[1:] if "3g" in each["name"] or "1g" in each["name"]]
    for each in parts:
        each["name"] = each["name"].replace(".", "")
    counters = slice_manifest("mig-1", (), pool=pool, sharedCounters=[counter_set(0)])
    del counters["spec"]["devices"]
    counters["metadata"]["name"] = "mig-1-counters"
    devices = slice_manifest("mig-1", parts, pool=pool)
    with published(stage, device_class("mig.nvidia.com", "mig"), counters, devices):
        serve(stage, "one", QWEN_06B, gpus=BY_CLAIM)
        assert held(stage, "one")[0][1].startswith("gpu-0-mig-3g20gb-")
        serve(stage, "two", QWEN_06B, gpus=BY_CLAIM)
        assert {device for _, device in held(stage, "one") + held(stage, "two")} == {
            "gpu-0-mig-3g20gb-0",
            "gpu-0-mig-3g20gb-4",
        }
        assert variant(stage, "one")["budget"]["totalBytes"] == half_bytes


def test_the_usual_pod_runs_where_a_class_stands_for_the_resource(stage):
    slice_ = add_dra_node(stage, "dra-1", ("l40s",), engines_find="l40s")
    mapped = device_class("gpu.nvidia.com", "gpu", extendedResourceName="nvidia.com/gpu")
    with published(stage, mapped, slice_):
        serve(stage, "llama", LLAMA_8B)
        (pod,) = serving(stage, "llama")
        assert (pod["spec"]["nodeName"], gpus_of(pod)) == ("dra-1", 1)
        assert variant(stage, "llama")["capacitySource"] == "ResourceSlice"


def test_without_a_class_the_usual_pod_is_refused_and_told_why(stage):
    slice_ = add_dra_node(stage, "dra-1", ("l40s",), engines_find="l40s")
    with published(stage, GPUS, slice_):
        stage.apply(model_deployment("llama", LLAMA_8B))
        said = says(stage, "llama", "Planned", "NoGpuCapacity")
        assert "spec.gpus.allocation" in said["message"]
