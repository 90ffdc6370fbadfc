"""The Job that reads a model: where it runs, what it may, and when it is another one."""

import json

import pytest

from shipfitter.core.model_uri import parse_model_uri
from shipfitter.render.inspection_job import inspection_job
from unit.render.plans import resource

IMAGE = "shipfitter/shipfitter:1.2.3"
GATED, SHELVED = "hf://org/model", "pvc://shelf/llama/8b"


def job(uri=GATED, revision="", *, image=IMAGE, hub_endpoint="", **changes):
    return inspection_job(
        resource(**changes), uri, revision, image=image, hub_endpoint=hub_endpoint
    )


def pod(*args, **changes):
    return job(*args, **changes)["spec"]["template"]["spec"]


def container(*args, **changes):
    (only,) = pod(*args, **changes)["containers"]
    return only


def variables(*args, **changes):
    return {each["name"]: each for each in container(*args, **changes)["env"]}


def test_it_belongs_to_its_deployment_and_goes_by_itself():
    made = job()
    metadata, spec = made["metadata"], made["spec"]
    assert metadata["ownerReferences"][0]["uid"] == "1234"
    assert metadata["labels"]["shipfitter.dev/modeldeployment"] == resource().metadata.name
    assert spec["backoffLimit"] == 0
    assert spec["ttlSecondsAfterFinished"] > 0
    assert spec["activeDeadlineSeconds"] > 0


@pytest.mark.parametrize("uri", [GATED, SHELVED])
def test_it_is_restricted_and_has_no_rights(uri):
    spec = pod(uri)
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"] == {
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    (only,) = spec["containers"]
    assert only["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert set(only["resources"]) == {"requests", "limits"}


def test_its_pod_is_none_of_those_that_serve():
    """Services, disruption budgets and the operator's own count of replicas go by these labels."""
    labels = job()["spec"]["template"]["metadata"]["labels"]
    assert not {"shipfitter.dev/modeldeployment", "shipfitter.dev/serves"} & set(labels)
    assert labels["shipfitter.dev/inspects"] == resource().metadata.name


def test_the_token_is_named_and_may_be_missing():
    """Were it required, a missing Secret would keep the pod from saying so."""
    got = variables(spec__model__tokenSecretRef={"name": "hf", "key": "k"})["HF_TOKEN"]
    reference = {"name": "hf", "key": "k", "optional": True}
    assert got["valueFrom"] == {"secretKeyRef": reference}
    args = container(spec__model__tokenSecretRef={"name": "hf", "key": "k"})["args"]
    assert "--secret=hf/k" in args


def test_a_repository_is_read_at_its_revision_from_the_operators_hub():
    args = container(GATED, "c0ffee", hub_endpoint="http://hub")["args"]
    assert args[:2] == ["inspect", GATED]
    assert "--revision=c0ffee" in args
    assert variables(hub_endpoint="http://hub")["HF_ENDPOINT"]["value"] == "http://hub"


def test_the_way_to_the_hub_is_the_engines_and_nothing_else_of_it():
    env = [
        {"name": "HF_ENDPOINT", "value": "http://mirror"},
        {"name": "https_proxy", "value": "http://proxy"},
        {"name": "VLLM_LOGGING_LEVEL", "value": "DEBUG"},
    ]
    got = variables(hub_endpoint="http://hub", spec__engine__env=env)
    assert got["HF_ENDPOINT"]["value"] == "http://mirror"
    assert got["https_proxy"]["value"] == "http://proxy"
    assert "VLLM_LOGGING_LEVEL" not in got


def test_a_claim_is_mounted_read_only_and_brings_no_token():
    changes = {"spec__model__tokenSecretRef": {"name": "hf"}}
    spec = pod(SHELVED, hub_endpoint="http://hub", **changes)
    claim = {"claimName": "shelf", "readOnly": True}
    assert {"name": "model", "persistentVolumeClaim": claim} in spec["volumes"]
    (only,) = spec["containers"]
    mount = {"name": "model", "mountPath": "/models", "readOnly": True}
    assert mount in only["volumeMounts"]
    assert f"--folder=/models/{parse_model_uri(SHELVED).path}" in only["args"]
    assert {each["name"] for each in only["env"]} == {"HOME", "HF_HOME"}


def test_only_a_claim_is_worth_a_gpu_node():
    bears = [{"key": "team", "operator": "Exists"}]
    keys = [each["key"] for each in pod(SHELVED, spec__placement__tolerations=bears)["tolerations"]]
    assert {"nvidia.com/gpu", "team"} <= set(keys)
    assert "tolerations" not in pod(GATED, spec__placement__tolerations=bears)


def test_it_runs_as_the_engine_does_where_that_matters():
    spec = pod(spec__serviceAccountName="engine", spec__imagePullSecrets=[{"name": "registry"}])
    assert spec["serviceAccountName"] == "engine"
    assert spec["imagePullSecrets"] == [{"name": "registry"}]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"uri": "hf://org/other"}, id="another model"),
        pytest.param({"revision": "v2"}, id="another revision"),
        pytest.param({"image": "shipfitter/shipfitter:2"}, id="another release of ours"),
        pytest.param({"spec__model__tokenSecretRef": {"name": "hf"}}, id="another Secret"),
        pytest.param({"spec__serviceAccountName": "x"}, id="another account"),
    ],
)
def test_what_it_does_is_in_its_name(other):
    assert job(**other)["metadata"]["name"] != job()["metadata"]["name"]


def test_what_it_does_not_depend_on_is_not():
    assert job(spec__replicas=7)["metadata"]["name"] == job()["metadata"]["name"]


def test_its_name_is_short_enough_for_the_longest_of_ours():
    name = "a" * 40
    assert len(job(metadata__name=name)["metadata"]["name"]) <= 63
    assert json.dumps(job(metadata__name=name))
