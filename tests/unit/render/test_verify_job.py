"""The Job that puts a plan under load: what it sends, where it runs, and what it may."""

import pytest

from shipfitter.render.load_size import Load, load_of, plan_hash
from shipfitter.render.verify_job import verify_job
from unit.render.plans import resource

IMAGE = "vllm/vllm-openai:v0.33.0"
HUB, SHELVED = "hf://org/model", "pvc://shelf/llama/8b"
LOAD = Load(at_once=8, input_tokens=350, output_tokens=100)
DIGEST = "0123456789abcdef"
KEY = {"name": "llm", "key": "key"}


def job(uri=HUB, *, addresses=("10.0.0.1",), hub_endpoint="", **changes):
    return verify_job(
        resource(**changes),
        LOAD,
        DIGEST,
        image=IMAGE,
        model_uri=uri,
        addresses=addresses,
        restarts={"pod-1": 2},
        hub_endpoint=hub_endpoint,
    )


def pod(*args, **changes):
    return job(*args, **changes)["spec"]["template"]["spec"]


def container(*args, **changes):
    (only,) = pod(*args, **changes)["containers"]
    return only


def variables(*args, **changes):
    return {each["name"]: each for each in container(*args, **changes)["env"]}


def client(*args, **changes):
    command = container(*args, **changes)["command"]
    return command[command.index("--") + 1 :]


def test_it_is_of_its_plan_and_goes_by_itself():
    made = job()
    metadata, spec = made["metadata"], made["spec"]
    assert metadata["name"].endswith("-verify-01234567")
    assert metadata["annotations"]["shipfitter.dev/plan-hash"] == DIGEST
    assert metadata["annotations"]["shipfitter.dev/restarts"] == '{"pod-1": 2}'
    assert metadata["ownerReferences"][0]["uid"] == "1234"
    assert (spec["backoffLimit"], spec["ttlSecondsAfterFinished"]) == (0, 3600)
    assert "shipfitter.dev/modeldeployment" not in spec["template"]["metadata"]["labels"]


@pytest.mark.parametrize("uri", [HUB, SHELVED])
def test_it_is_restricted_and_takes_no_gpu(uri):
    spec = pod(uri)
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["runAsUser"] > 0
    (only,) = spec["containers"]
    assert only["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert set(only["resources"]["limits"]) == {"cpu", "memory"}
    assert variables(uri)["NVIDIA_VISIBLE_DEVICES"]["value"] == "void"


def test_the_user_of_the_template_goes_before_ours():
    context = {"spec": {"securityContext": {"runAsUser": 2000, "fsGroup": 2000}}}
    found = pod(spec__template=context)["securityContext"]
    assert (found["runAsUser"], found["fsGroup"]) == (2000, 2000)


def test_the_engines_own_client_sends_to_the_service():
    words = client()
    assert words[:3] == ["vllm", "bench", "serve"]
    name = resource().metadata.name
    for wanted in (
        f"--base-url=http://{name}.default.svc.cluster.local:8000",
        f"--model={name}",
        "--tokenizer=org/model",
        "--random-input-len=350",
        "--random-output-len=100",
        "--num-prompts=16",
        "--max-concurrency=8",
        "--ignore-eos",
    ):
        assert wanted in words


def test_a_model_on_a_claim_brings_its_tokenizer():
    assert "--tokenizer=/models/llama/8b" in client(SHELVED)
    (volume,) = [each for each in pod(SHELVED)["volumes"] if each["name"] == "model"]
    assert volume["persistentVolumeClaim"] == {"claimName": "shelf", "readOnly": True}
    assert variables(SHELVED)["HF_HUB_OFFLINE"]["value"] == "1"


def test_what_the_engine_is_told_of_its_tokenizer_the_client_is_told():
    args = ["--tokenizer", "org/other", "--tokenizer-mode=mistral", "--trust-remote-code"]
    words = client(spec__engine={"args": args})
    assert {"--tokenizer=org/other", "--tokenizer-mode=mistral", "--trust-remote-code"} <= set(
        words
    )


def test_a_gated_tokenizer_is_fetched_with_the_secrets_token():
    found = variables(spec__model__tokenSecretRef={"name": "hf", "key": "token"})
    want = {"name": "hf", "key": "token", "optional": True}
    assert found["HF_TOKEN"]["valueFrom"] == {"secretKeyRef": want}


def test_an_engine_that_wants_a_key_gets_it_from_the_same_secret():
    env = [{"name": "VLLM_API_KEY", "valueFrom": {"secretKeyRef": KEY}}]
    found = variables(spec__engine={"env": env})["OPENAI_API_KEY"]
    assert found == {"name": "OPENAI_API_KEY", "valueFrom": {"secretKeyRef": KEY}}


def test_a_proxy_is_for_the_hub_and_not_for_the_engines():
    env = [{"name": "HTTPS_PROXY", "value": "http://p:1"}, {"name": "NO_PROXY", "value": "a.b"}]
    found = variables(spec__engine={"env": env}, hub_endpoint="https://mirror")
    name = resource().metadata.name
    around = f"a.b,{name}.default.svc.cluster.local,10.0.0.1"
    assert found["NO_PROXY"]["value"] == found["no_proxy"]["value"] == around
    assert found["HTTPS_PROXY"]["value"] == "http://p:1"
    assert found["HF_ENDPOINT"]["value"] == "https://mirror"


def test_preemptions_are_asked_of_the_engines_themselves():
    command = container(addresses=("10.0.0.1", "fd00::1"))["command"]
    assert "--engines=http://10.0.0.1:8000,http://[fd00::1]:8000" in command


@pytest.mark.parametrize(
    ("typical", "longest", "sequences", "want"),
    [
        pytest.param(2048, 131_072, 96, (96, 1920, 256), id="prompt and half the answer are held"),
        pytest.param(8192, 1024, 4, (4, 736, 256), id="never longer than a request may be"),
        pytest.param(16, 64, 1, (1, 14, 4), id="a very small one"),
        pytest.param(1, 1, 1, (1, 1, 1), id="the smallest"),
        pytest.param(1024, 4096, 10_000, (2048, 896, 256), id="as many as one client manages"),
    ],
)
def test_the_load(typical, longest, sequences, want):
    load = load_of(typical, longest, sequences)
    assert (load.at_once, load.input_tokens, load.output_tokens) == want


RECORD = {
    "inputsHash": "a",
    "decidedAt": "2026-03-01T12:00:00Z",
    "variants": [{"pool": "p", "maxModelLen": 8192, "maxNumSeqs": 8, "capacitySource": "Labels"}],
}


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        pytest.param({"decidedAt": "2027-01-01T00:00:00Z"}, True, id="when it was decided"),
        pytest.param({"inputsHash": "b"}, False, id="another wish"),
        pytest.param(
            {"variants": [{**RECORD["variants"][0], "capacitySource": "Measured"}]},
            True,
            id="who tells of its nodes",
        ),
        pytest.param(
            {"variants": [{**RECORD["variants"][0], "maxNumSeqs": 4}]}, False, id="its figures"
        ),
    ],
)
def test_what_makes_another_plan(changes, same):
    assert (plan_hash({**RECORD, **changes}) == plan_hash(RECORD)) is same
