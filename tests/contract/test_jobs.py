"""The real API server takes the Jobs that we make, and their pods where pods are restricted."""

import copy

import pytest

from shipfitter.api.model_deployment import ModelDeployment
from shipfitter.render.inspection_job import inspection_job
from shipfitter.render.load_size import Load
from shipfitter.render.verify_job import verify_job
from unit.api.mistakes import changed, minimal

pytestmark = pytest.mark.plane
NAMESPACE = "restricted"
STRICT = "fieldManager=shipfitter&fieldValidation=Strict"
EVERYTHING = {
    "metadata.namespace": NAMESPACE,
    "metadata.uid": "1234",
    "spec.model.tokenSecretRef": {"name": "hf", "key": "token"},
    "spec.imagePullSecrets": [{"name": "registry"}],
    "spec.serviceAccountName": "default",
    "spec.placement": {"tolerations": [{"key": "team", "operator": "Exists"}]},
    "spec.engine.env": [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}],
    "spec.template": {"spec": {"securityContext": {"runAsUser": 2000, "runAsGroup": 2000}}},
}


@pytest.fixture(scope="module")
def namespace(installed_plane):
    """A namespace that takes restricted pods only."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    body = {"kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}
    installed_plane.request("POST", "/api/v1/namespaces", {"apiVersion": "v1", **body})
    installed_plane.kubectl("wait", "-n", NAMESPACE, "--for=create", "serviceaccount/default")
    return NAMESPACE


def inspection(resource, uri):
    return inspection_job(resource, uri, "main", image="shipfitter:1", hub_endpoint="http://hub")


def verification(resource, uri):
    return verify_job(
        resource,
        Load(at_once=8, input_tokens=350, output_tokens=100),
        "0123456789abcdef",
        image="vllm/vllm-openai:v0.33.0",
        model_uri=uri,
        addresses=("10.0.0.1",),
        restarts={"pod-1": 2},
    )


@pytest.mark.parametrize("uri", ["hf://org/model", "pvc://shelf/llama/8b"])
@pytest.mark.parametrize("made", [inspection, verification])
def test_the_job_and_its_pod_are_taken_as_they_are_rendered(installed_plane, namespace, made, uri):
    resource = ModelDeployment.parse(changed(minimal(), EVERYTHING), unknown="forbid")
    job = made(resource, uri)
    base = f"/apis/batch/v1/namespaces/{namespace}/jobs/{job['metadata']['name']}"
    taken = installed_plane.admin.request(
        "PATCH",
        f"{base}?{STRICT}&force=true&dryRun=All",
        job,
        content_type="application/apply-patch+yaml",
    )
    (container,), (wanted,) = (
        each["spec"]["template"]["spec"]["containers"] for each in (taken, job)
    )
    for field in ("image", "command", "args"):
        assert container.get(field) == wanted.get(field)
    assert set(container["resources"]["limits"]) == {"cpu", "memory"}, "no GPU"
    pod = {"apiVersion": "v1", "kind": "Pod", **copy.deepcopy(job["spec"]["template"])}
    pod["metadata"]["name"] = "made-by-a-job"
    path = f"/api/v1/namespaces/{namespace}/pods?{STRICT}&dryRun=All"
    accepted = installed_plane.request("POST", path, pod)
    assert [each["name"] for each in accepted["spec"]["volumes"]] == [
        each["name"] for each in pod["spec"]["volumes"]
    ], "no token of the API's is mounted"
