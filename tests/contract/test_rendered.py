"""The real API server takes what we render for each example, field by field."""

from pathlib import Path

import pytest
import yaml

from shipfitter.api.model_deployment import ModelDeployment
from shipfitter.core.plan import VariantPlan
from shipfitter.render.claim_template import claim_template
from shipfitter.render.config_map import logging_config_map
from shipfitter.render.deployment import deployment, on_one_node, scale_manifest
from shipfitter.render.disruption import disruption_budget
from shipfitter.render.service import service
from unit.api.mistakes import changed
from unit.render.plans import IMAGE, plan, ranks, record, sizing

pytestmark = pytest.mark.plane

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))
PATHS = {
    "ConfigMap": "/api/v1/namespaces/{namespace}/configmaps/{name}",
    "Deployment": "/apis/apps/v1/namespaces/{namespace}/deployments/{name}",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets/{name}",
    "ResourceClaimTemplate": "/apis/resource.k8s.io/v1/namespaces/{namespace}"
    "/resourceclaimtemplates/{name}",
    "Service": "/api/v1/namespaces/{namespace}/services/{name}",
}
EVERYTHING = {
    "spec.gpus.allocation": "DRA",
    "spec.replicas": 3,
    "spec.placement": {
        "nodeSelector": {"zone": "b"},
        "tolerations": [{"key": "team", "operator": "Exists"}],
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
        ],
        "priorityClassName": "serving",
    },
    "spec.imagePullSecrets": [{"name": "registry"}],
    "spec.serviceAccountName": "engine",
    "spec.resources": {"requests": {"cpu": 4}, "limits": {"memory": "64Gi"}},
    "spec.template": {
        "metadata": {"annotations": {"a": "b"}},
        "spec": {
            "volumes": [{"name": "cache", "persistentVolumeClaim": {"claimName": "c"}}],
            "containers": [
                {"name": "engine", "livenessProbe": {"exec": {"command": ["true"]}}},
                {"name": "proxy", "image": "proxy:1"},
            ],
        },
    },
}


def apply(plane, manifest, *, manager="shipfitter", dry_run=True):
    path = PATHS[manifest["kind"]].format(**manifest["metadata"])
    query = f"?fieldManager={manager}&fieldValidation=Strict&force=true"
    return plane.admin.request(
        "PATCH",
        path + query + ("&dryRun=All" if dry_run else ""),
        manifest,
        content_type="application/apply-patch+yaml",
    )


def parsed(body):
    return ModelDeployment.parse(changed(body, {"metadata.uid": "1234"}), unknown="forbid")


def rendered(resource, planned):
    variant = VariantPlan(sizing=planned, replicas=resource.spec.replicas)
    written = record(resource, plan(planned))
    yield deployment(resource, variant, written, image=IMAGE, hub_endpoint="http://hub")
    scale = {"replicas": 0, "max_surge": 0, "max_unavailable": 1}
    created = deployment(resource, variant, written, image=IMAGE, **scale)
    yield on_one_node(created, resource)
    yield service(resource)
    yield logging_config_map(resource)
    yield claim_template(resource, planned)
    budget = disruption_budget(resource)
    if budget is not None:
        yield budget


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_taken_as_it_is_rendered(installed_plane, path):
    body = yaml.safe_load(path.read_text())
    resource = parsed(body)
    planned = sizing(uri=resource.spec.model.uri, settings={"layout": ranks(2)})
    for manifest in rendered(resource, planned):
        apply(installed_plane, manifest)


def test_everything_a_user_can_add_is_taken(installed_plane):
    body = changed(yaml.safe_load(EXAMPLES[0].read_text()), EVERYTHING)
    planned = sizing(pool={"mig_profile": "1g.10gb"})
    for manifest in rendered(parsed(body), planned):
        apply(installed_plane, manifest)


def ownerless(manifest):
    """Without its owner, which does not exist here: the garbage collector would take it away."""
    metadata = {k: v for k, v in manifest["metadata"].items() if k != "ownerReferences"}
    return {**manifest, "metadata": metadata}


def test_scale_and_workload_are_two_managers_that_do_not_meet(installed_plane):
    """Applying the workload again, as a new decision does, leaves replicas as they were scaled."""
    resource = parsed(yaml.safe_load(EXAMPLES[0].read_text()))
    planned = sizing()
    variant = VariantPlan(sizing=planned, replicas=1)
    written = record(resource, plan(planned))
    options = {"replicas": 0, "max_surge": 0, "max_unavailable": 1}
    created = ownerless(deployment(resource, variant, written, image=IMAGE, **options))
    name = created["metadata"]["name"]
    try:
        assert apply(installed_plane, created, dry_run=False)["spec"]["replicas"] == 0
        scale = scale_manifest(resource, name, replicas=3, max_surge=1, max_unavailable=0)
        apply(installed_plane, scale, manager="shipfitter-scale", dry_run=False)
        whole = ownerless(deployment(resource, variant, written, image=IMAGE))
        got = apply(installed_plane, whole, dry_run=False)
        assert got["spec"]["replicas"] == 3
        assert got["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
        generation = got["metadata"]["generation"]
        again = apply(installed_plane, whole, dry_run=False)
        assert again["metadata"]["generation"] == generation, "the same decision changes nothing"
    finally:
        path = PATHS["Deployment"].format(**created["metadata"])
        installed_plane.request("DELETE", path)
