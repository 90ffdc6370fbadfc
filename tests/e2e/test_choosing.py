"""Which GPUs, how many, and which of several models: or a clear no."""

import pytest

from e2e.stories import (
    A100,
    L4,
    L40S,
    LLAMA_8B,
    flag,
    gpus_of,
    measured,
    model_deployment,
    says,
    serve,
    serving,
    stays,
    variant,
)
from world.hub.published import published_bytes, published_config

pytestmark = pytest.mark.plane
LLAMA_70B = "hf://meta-llama/Llama-3.3-70B-Instruct"
QWEN_32B = "hf://Qwen/Qwen3-32B"
QWEN_32B_AWQ = "hf://Qwen/Qwen3-32B-AWQ"


def test_of_two_gpu_types_the_one_that_carries_the_whole_length_is_taken(stage):
    stage.add_gpu_node("l4-1", L4, 2)
    stage.add_gpu_node("l40s-1", L40S, 2)
    measured(stage, "l4-1", "l40s-1")
    serve(stage, "llama", LLAMA_8B)
    planned = variant(stage, "llama")
    (pod,) = serving(stage, "llama")
    assert (planned["gpuProduct"], planned["maxModelLen"]) == (L40S, 131_072)
    assert (pod["spec"]["nodeName"], gpus_of(pod)) == ("l40s-1", 1)
    assert L4 in stage.condition("llama", "Planned")["message"], "it should say what it passed by"


def test_a_70b_model_takes_as_many_gpus_as_its_ranks_need(stage):
    stage.add_gpu_node("a100-1", A100, 8)
    serve(stage, "llama-70b", LLAMA_70B)
    planned = variant(stage, "llama-70b")
    (pod,) = serving(stage, "llama-70b")
    ranks = planned["tensorParallelSize"]
    assert ranks in (2, 4, 8), "64 heads and 8 KV heads divide by these; one GPU cannot hold it"
    assert planned["gpusPerReplica"] == gpus_of(pod) == ranks
    assert flag(pod, "tensor-parallel-size") == str(ranks)
    weights_a_rank = published_bytes("meta-llama/Llama-3.3-70B-Instruct") / ranks
    assert planned["budget"]["weightsBytes"] == pytest.approx(weights_a_rank, rel=0.03)


def test_alternatives_are_tried_in_order_until_one_fits(stage):
    stage.add_gpu_node("l40s-1", L40S, 1)
    wish = model_deployment("qwen", QWEN_32B)
    wish["spec"]["model"]["alternatives"] = [{"uri": QWEN_32B_AWQ}]
    stage.apply(wish)
    stage.eventually(lambda: stage.ready("qwen"), what="the AWQ form serves")
    (pod,) = serving(stage, "qwen")
    engine = pod["spec"]["containers"][0]
    assert variant(stage, "qwen")["modelUri"] == QWEN_32B_AWQ
    assert engine["args"][0] == "Qwen/Qwen3-32B-AWQ"
    assert "Qwen/Qwen3-32B" in engine["args"], "clients still call it by the name they know"


def test_models_that_fit_nowhere_are_refused_in_figures_before_anything_is_made(stage):
    """One is read from the hub, the other written out in the spec."""
    stage.add_gpu_node("l4-1", L4, 1)
    stage.add_gpu_node("l40s-1", L40S, 2)
    deepseek = model_deployment("deepseek", "pvc://models/deepseek-v3")
    deepseek["spec"]["model"]["facts"] = {
        "config": published_config("deepseek-ai/DeepSeek-V3"),
        "weightsBytes": published_bytes("deepseek-ai/DeepSeek-V3"),
    }
    stage.apply(model_deployment("llama-70b", LLAMA_70B))
    stage.apply(deepseek)
    for name in ("deepseek", "llama-70b"):
        planned = says(stage, name, "Planned", "DoesNotFit")
        assert planned["status"] == "False"
        assert "GiB" in planned["message"]
        assert "what would fit: " in planned["message"]
        assert stage.condition(name, "Ready")["reason"] == "DoesNotFit"
        assert stage.condition(name, "Stalled")["status"] == "True"

    def made():
        ours = "shipfitter.dev/modeldeployment"
        kinds = ("deployments", "pods", "services")
        return [each for kind in kinds for each in stage.objects(kind, selector=ours)]

    assert stays(made) == []


def test_a_refused_model_starts_by_itself_when_a_node_that_carries_it_joins(stage):
    stage.add_gpu_node("l4-1", L4, 1)
    stage.apply(model_deployment("qwen", QWEN_32B_AWQ, workload={"maxModelLen": {"min": 32_768}}))
    says(stage, "qwen", "Planned", "DoesNotFit")
    stage.add_gpu_node("l40s-1", L40S, 1)
    stage.eventually(lambda: stage.ready("qwen"), what="it serves on the new node")
    assert serving(stage, "qwen")[0]["spec"]["nodeName"] == "l40s-1"
