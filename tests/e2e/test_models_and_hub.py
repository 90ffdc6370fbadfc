"""Where model facts come from when the hub is down, says no, or does not know the model."""

import pytest

from e2e.model_volumes import model_claim
from e2e.stories import (
    L40S,
    LLAMA_8B,
    at_rest,
    measured,
    model_deployment,
    says,
    serve,
    stays,
    uids,
    variant,
    versions,
)
from world.hub.published import published_repo
from world.hub.repository import repository, synthetic_repo
from world.stage import ROOT

pytestmark = pytest.mark.plane

CONFIG = {  # of no published model: nothing but the hub can know it
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "torch_dtype": "bfloat16",
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "num_hidden_layers": 16,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128_256,
    "max_position_embeddings": 32_768,
}


@pytest.fixture
def gpu(stage):
    stage.add_gpu_node("l40s-1", L40S, 2)
    return stage


def test_a_hub_that_is_down_is_asked_again_and_well_known_models_do_not_wait_for_it(gpu):
    gpu.hub.add(synthetic_repo("acme/away-for-a-while", CONFIG))
    gpu.hub.switch(down=True)
    gpu.apply(model_deployment("unknown", "hf://acme/away-for-a-while"))
    gpu.apply(model_deployment("known", "hf://Qwen/Qwen3-0.6B"))
    told = says(gpu, "unknown", "ModelResolved", "HubUnavailable")
    assert told["status"] == "False"
    assert "spec.model.facts" in told["message"], "the way out without a hub"
    assert gpu.condition("unknown", "Ready")["reason"] == "HubUnavailable"
    says(gpu, "known", "ModelResolved", "Resolved")
    gpu.eventually(lambda: variant(gpu, "known").get("maxModelLen") == 40_960)
    gpu.hub.switch()
    names = ("unknown", "known")
    gpu.eventually(lambda: all(map(gpu.ready, names)), what="both serve once the hub is back")
    assert gpu.condition("unknown", "ModelResolved")["status"] == "True"


def test_a_restart_writes_nothing_and_needs_no_hub(gpu):
    gpu.hub.add(synthetic_repo("acme/keeps-running", CONFIG))
    measured(gpu, "l40s-1")
    serve(gpu, "runs", "hf://acme/keeps-running", replicas=2)
    gpu.eventually(lambda: gpu.status("runs").get("observed"), what="the engine was asked")
    before, pods = at_rest(gpu, "runs"), uids(gpu.pods("runs"))
    status = gpu.status("runs")
    gpu.hub.switch(down=True)
    with gpu.operator_away():
        pass
    assert gpu.status("runs") == status
    assert stays(lambda: versions(gpu, "runs")) == before
    assert uids(gpu.pods("runs")) == pods
    gpu.change("runs", {"workload": {"maxNumSeqs": {"preferred": 8}}})
    gpu.eventually(
        lambda: variant(gpu, "runs")["maxNumSeqs"] == 8, what="a change is planned without a hub"
    )


def test_a_gated_model_we_do_not_know_names_the_way_out(gpu):
    gpu.hub.add(synthetic_repo("acme/gated", CONFIG, gated=True, accepted_tokens=("hf_ok",)))
    gpu.apply(model_deployment("gated", "hf://acme/gated"))
    told = says(gpu, "gated", "ModelResolved", "TokenRequired")
    assert "gated" in told["message"]
    assert "spec.model.facts" in told["message"]
    facts = {"config": CONFIG, "weightsBytes": gpu.hub.repositories["acme/gated"].stored_bytes}
    gpu.plane.kubectl("create", "secret", "generic", "hf", "--from-literal=token=hf_ok")
    gpu.change("gated", {"model": {"facts": facts, "tokenSecretRef": {"name": "hf"}}})
    gpu.eventually(lambda: gpu.ready("gated"), what="it serves: the engine has the token")


def test_a_gated_model_that_comes_with_shipfitter_needs_nothing_of_the_hub(stage):
    stage.hub.add(published_repo("google/gemma-3-27b-it", gated=True))
    stage.apply(model_deployment("gemma", "hf://google/gemma-3-27b-it"))
    told = says(stage, "gemma", "ModelResolved", "Resolved")
    assert "come with Shipfitter" in told["message"]


def test_what_does_not_exist_is_told_apart(stage):
    lost = {"uri": LLAMA_8B, "revision": "v0-never"}
    stage.apply(model_deployment("misspelt", "hf://acme/nothing"))
    stage.apply({**model_deployment("no-revision"), "spec": {"model": lost}})
    for name, want in (("misspelt", "spelling"), ("no-revision", "no revision 'v0-never'")):
        told = says(stage, name, "ModelResolved", "ModelNotFound")
        assert want in told["message"]
        assert stage.condition(name, "Ready")["reason"] == "ModelNotFound"
    assert stage.objects("deployments") == []


def test_an_unknown_class_is_refused_by_name_and_facts_of_a_known_one_are_the_way_out(gpu):
    strange = {**CONFIG, "architectures": ["StrangeForCausalLM"], "model_type": "strange"}
    tensors = [("model.embed_tokens.weight", "BF16", (128_256, 2048))]
    gpu.hub.add(repository("acme/strange", config=strange, tensors=tensors))
    gpu.apply(model_deployment("strange", "hf://acme/strange"))
    told = says(gpu, "strange", "ModelResolved", "UnknownArchitecture")
    assert "StrangeForCausalLM" in told["message"]
    assert "spec.model.facts" in told["message"]
    assert gpu.objects("deployments") == []
    gpu.change("strange", {"model": {"facts": {"config": CONFIG, "weightsBytes": 2_000_000_000}}})
    says(gpu, "strange", "Planned", "Fits")
    assert variant(gpu, "strange")["maxModelLen"] == CONFIG["max_position_embeddings"]


def test_a_model_on_a_claim_with_its_facts_in_the_spec_needs_no_network_at_all(gpu):
    """The example for clusters that are cut off, word by word."""
    published = published_repo("meta-llama/Llama-3.1-8B-Instruct")
    model_claim(gpu, "models", "llama-3.1-8b-instruct", published)
    gpu.hub.switch(down=True)
    asked = sum(gpu.hub.requests.values())
    gpu.apply(ROOT / "examples" / "inline-facts.yaml")
    gpu.eventually(lambda: gpu.ready("llama-8b-offline"), what="it serves without a hub")
    planned = variant(gpu, "llama-8b-offline")
    assert (planned["gpuProduct"], planned["maxModelLen"]) == (L40S, 131_072)
    assert sum(gpu.hub.requests.values()) == asked
