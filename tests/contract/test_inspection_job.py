"""The real API server takes the Job that reads a model, and its pod where pods are restricted."""

import copy

import pytest

from shipfitter.api.model_deployment import ModelDeployment
from shipfitter.render.inspection_job import inspection_job
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
}


@pytest.fixture(scope="module")
def namespace(installed_plane):
    """A namespace that takes restricted pods only."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    body = {"kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}
    installed_plane.request("POST", "/api/v1/namespaces", {"apiVersion": "v1", **body})
    installed_plane.kubectl("wait", "-n", NAMESPACE, "--for=create", "serviceaccount/default")
    return NAMESPACE


@pytest.mark.parametrize("uri", ["hf://org/model", "pvc://shelf/llama/8b"])
def test_the_job_and_its_pod_are_taken_as_they_are_rendered(installed_plane, namespace, uri):
    resource = ModelDeployment.parse(changed(minimal(), EVERYTHING), unknown="forbid")
    job = inspection_job(resource, uri, "main", image="shipfitter:1", hub_endpoint="http://hub")
    base = f"/apis/batch/v1/namespaces/{namespace}/jobs/{job['metadata']['name']}"
    taken = installed_plane.admin.request(
        "PATCH",
        f"{base}?{STRICT}&force=true&dryRun=All",
        job,
        content_type="application/apply-patch+yaml",
    )
    template = taken["spec"]["template"]
    assert template["spec"]["containers"][0]["image"] == "shipfitter:1"
    pod = {"apiVersion": "v1", "kind": "Pod", **copy.deepcopy(job["spec"]["template"])}
    pod["metadata"]["name"] = "inspect"
    path = f"/api/v1/namespaces/{namespace}/pods?{STRICT}&dryRun=All"
    made = installed_plane.request("POST", path, pod)
    assert [each["name"] for each in made["spec"]["volumes"]] == [
        each["name"] for each in pod["spec"]["volumes"]
    ], "no token of the API's is mounted"
