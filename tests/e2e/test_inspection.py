"""Models nobody else can see: a Job reads them, and what it found outlives it."""

import json

import pytest

from e2e.model_volumes import model_claim
from e2e.stories import L40S, measured, model_deployment, says, stays, uids, variant
from world.hub.repository import repository, synthetic_repo
from world.hub.virtual_files import VirtualFile
from world.stage import NAMESPACE

pytestmark = pytest.mark.plane

TOKEN = {"name": "hf"}
CONFIG = {  # of no published model: nothing but a Job can know it
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


def gated_repo(name):
    return synthetic_repo(name, CONFIG, gated=True, accepted_tokens=("hf_ok",))


def wish(name, uri, **model):
    return {**model_deployment(name), "spec": {"model": {"uri": uri, **model}}}


def secret(stage, token, name="hf"):
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}}
    stage.apply({**body, "stringData": {"token": token}})


def jobs(stage, name):
    return stage.objects("jobs", selector=f"shipfitter.dev/modeldeployment={name}")


def nothing_left(stage, name):
    """No Job, and none of its pods."""
    pods = stage.objects("pods", selector=f"shipfitter.dev/inspects={name}")
    return not jobs(stage, name) and not pods


@pytest.fixture
def gpu(stage):
    stage.add_gpu_node("l40s-1", L40S, 2)
    measured(stage, "l40s-1")
    yield stage
    stage.delete("secret", "hf")


def test_a_gated_model_is_read_with_its_secret_and_served_with_it(gpu):
    repo = gated_repo("acme/gated-and-ours")
    gpu.hub.add(repo)
    secret(gpu, "hf_ok")
    gpu.apply(wish("gated", "hf://acme/gated-and-ours", tokenSecretRef=TOKEN))
    gpu.eventually(lambda: gpu.ready("gated"), what="it serves: the engine has the token, too")
    assert "safetensors headers" in gpu.condition("gated", "ModelResolved")["message"]
    model = gpu.status("gated")["model"]
    assert (model["revision"], model["weightsBytes"]) == (repo.sha, repo.stored_bytes)
    gpu.eventually(lambda: nothing_left(gpu, "gated"), what="the Job is gone")
    gpu.eventually(lambda: gpu.status("gated").get("observed"), what="the engine was asked")
    before, status = uids(gpu.pods("gated")), gpu.status("gated")
    gpu.hub.switch(down=True)
    with gpu.operator_away():
        pass
    assert stays(lambda: uids(gpu.pods("gated"))) == before
    assert gpu.status("gated") == status
    assert jobs(gpu, "gated") == [], "what is known is not asked again"


def test_a_private_repository_is_as_good_as_a_gated_one(gpu):
    gpu.hub.add(synthetic_repo("acme/hidden", CONFIG, private=True, accepted_tokens=("hf_ok",)))
    secret(gpu, "hf_ok")
    gpu.apply(wish("hidden", "hf://acme/hidden", tokenSecretRef=TOKEN))
    gpu.eventually(lambda: gpu.ready("hidden"), what="it serves")


def test_while_the_job_reads_it_is_said_and_a_new_operator_goes_on_with_the_same_job(gpu):
    gpu.hub.add(gated_repo("acme/slow"))
    secret(gpu, "hf_ok")
    gpu.hub.switch(delay_seconds=3.0)
    gpu.apply(wish("slow", "hf://acme/slow", tokenSecretRef=TOKEN))
    told = says(gpu, "slow", "ModelResolved", "Inspecting")
    assert "reads the model, up to 600 s" in told["message"]
    assert gpu.condition("slow", "Ready")["reason"] == "Inspecting"
    assert gpu.condition("slow", "Reconciling")["status"] == "True"
    assert gpu.condition("slow", "Stalled")["status"] == "False"
    begun = uids(jobs(gpu, "slow"))
    gpu.kill_operator()
    seen = set(begun)

    def resolved():
        seen.update(uids(jobs(gpu, "slow")))
        return gpu.condition("slow", "ModelResolved").get("status") == "True"

    gpu.eventually(resolved, what="the new operator understands the Job")
    assert seen == begun, "one Job was enough"
    gpu.hub.switch()
    gpu.eventually(lambda: gpu.ready("slow"), what="it serves")
    assert nothing_left(gpu, "slow")


@pytest.mark.parametrize(
    ("token", "want"),
    [
        pytest.param("hf_stranger", "has no access to it", id="a token without access"),
        pytest.param("hf_nobody", "does not accept the token", id="a token that is none"),
        pytest.param("", "there is no such Secret here", id="no Secret"),
    ],
)
def test_a_token_that_does_not_do_is_told_and_mended_by_itself(gpu, token, want):
    gpu.hub.add(gated_repo("acme/locked"))
    if token:
        secret(gpu, token)
    gpu.apply(wish("locked", "hf://acme/locked", tokenSecretRef=TOKEN))
    told = says(gpu, "locked", "ModelResolved", "TokenRequired")
    assert want in told["message"]
    assert gpu.condition("locked", "Ready")["reason"] == "TokenRequired"
    assert stays(lambda: gpu.objects("deployments"), seconds=1) == []
    secret(gpu, "hf_ok")
    gpu.eventually(lambda: gpu.ready("locked"), what="it serves with the right token")
    gpu.eventually(lambda: nothing_left(gpu, "locked"))


def test_a_model_on_a_claim_needs_no_hub_and_no_facts(gpu):
    repo = synthetic_repo("acme/on-a-claim", CONFIG)
    model_claim(gpu, "shelf", "llama/one", repo)
    gpu.hub.switch(down=True)
    gpu.apply(wish("shelved", "pvc://shelf/llama/one"))
    gpu.eventually(lambda: gpu.ready("shelved"), what="it serves from the claim")
    assert gpu.status("shelved")["model"]["weightsBytes"] == repo.stored_bytes
    assert variant(gpu, "shelved")["maxModelLen"] == 32_768
    gpu.eventually(lambda: nothing_left(gpu, "shelved"))


def test_a_wrong_path_is_told_and_a_changed_spec_starts_a_new_job(gpu):
    model_claim(gpu, "bench", "llama/two", synthetic_repo("acme/two", CONFIG))
    gpu.apply(wish("lost", "pvc://bench/llama/three"))
    told = says(gpu, "lost", "ModelResolved", "ModelNotFound")
    assert "pvc://bench/llama/three: config.json cannot be read" in told["message"]
    failed = uids(jobs(gpu, "lost"))
    assert len(failed) == 1, "it stays, for a look at its log"
    gpu.change("lost", {"model": {"uri": "pvc://bench/llama/two"}})
    gpu.eventually(lambda: gpu.ready("lost"), what="it serves from the right path")
    gpu.eventually(lambda: nothing_left(gpu, "lost"), what="the failed Job is gone, too")


def test_what_is_wrong_on_a_claim_is_told_apart(gpu):
    index = {"model.safetensors.index.json": VirtualFile(b'{"weight_map": {"a": "gone.safetenso')}
    model_claim(gpu, "torn", "model", repository("acme/torn", config=CONFIG, more_files=index))
    gpu.apply(wish("torn", "pvc://torn/model"))
    gpu.apply(wish("nowhere", "pvc://no-such-claim/model"))
    told = says(gpu, "torn", "ModelResolved", "ModelUnreadable")
    assert "model.safetensors.index.json: this is no JSON" in told["message"]
    told = says(gpu, "nowhere", "ModelResolved", "ModelNotFound")
    assert "has no claim 'no-such-claim'" in told["message"]
    assert jobs(gpu, "nowhere") == [], "a pod could only wait for the claim"


def test_the_job_runs_restricted_and_the_operator_may_read_no_secret(gpu):
    gpu.hub.add(gated_repo("acme/watched"))
    secret(gpu, "hf_ok")
    gpu.hub.switch(delay_seconds=1.0)
    label = "pod-security.kubernetes.io/enforce=restricted"
    gpu.plane.kubectl("label", "namespace", "default", label)
    try:
        gpu.apply(wish("watched", "hf://acme/watched", tokenSecretRef=TOKEN))
        (job,) = gpu.eventually(lambda: jobs(gpu, "watched"))
        assert job["spec"]["template"]["spec"]["automountServiceAccountToken"] is False
        says(gpu, "watched", "ModelResolved", "Resolved")
    finally:
        gpu.plane.kubectl("label", "namespace", "default", label.partition("=")[0] + "-")
    review = {"spec": {"user": f"system:serviceaccount:{NAMESPACE}:shipfitter-operator"}}
    for verb in ("get", "list", "watch"):
        asks = {"namespace": "default", "verb": verb, "group": "", "resource": "secrets"}
        review["spec"]["resourceAttributes"] = asks
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        assert gpu.plane.request("POST", path, review)["status"]["allowed"] is False, verb
    assert "hf_ok" not in json.dumps(job)
