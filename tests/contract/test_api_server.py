"""The real API server takes our CRDs, keeps every field of our objects, and refuses mistakes."""

import pytest

from shipfitter.api.crd import crd_documents
from shipfitter.api.model_deployment import ModelDeployment
from shipfitter.errors import InvalidSpecError
from unit.api.full_sample import SAMPLES, model_deployment
from unit.api.mistakes import MISTAKES, RIGHT, changed, minimal
from world.controlplane import ApiError

pytestmark = pytest.mark.plane

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
KINDS = "/apis/shipfitter.dev/v1alpha1"
PATHS = {
    "ModelDeployment": f"{KINDS}/namespaces/default/modeldeployments",
    "GPUNode": f"{KINDS}/gpunodes",
    "Calibration": f"{KINDS}/calibrations",
}
DRY_RUN = "?dryRun=All&fieldValidation=Strict"


@pytest.fixture(name="plane")
def _plane(installed_plane):
    return installed_plane


@pytest.mark.parametrize("document", crd_documents(), ids=lambda d: d["spec"]["names"]["kind"])
def test_the_crd_is_structural(plane, document):
    crd = plane.request("GET", f"{CRDS}/{document['metadata']['name']}")
    conditions = {c["type"]: c["status"] for c in crd["status"]["conditions"]}
    assert "NonStructuralSchema" not in conditions, crd["status"]["conditions"]
    assert conditions["NamesAccepted"] == "True"


@pytest.mark.parametrize("kind", SAMPLES)
def test_every_field_survives(plane, kind):
    sample = SAMPLES[kind]()
    path = PATHS[kind]
    name = sample["metadata"]["name"]
    plane.request("POST", f"{path}?fieldValidation=Strict", sample)
    if kind != "Calibration":
        stored = plane.request("GET", f"{path}/{name}")
        status = {**stored, "status": sample["status"]}
        plane.request("PUT", f"{path}/{name}/status?fieldValidation=Strict", status)
    stored = plane.request("GET", f"{path}/{name}")
    assert stored.get("spec") == sample.get("spec")
    assert stored["status"] == sample["status"]
    plane.request("DELETE", f"{path}/{name}")


def test_a_minimal_object_gets_one_replica_and_no_other_intent(plane):
    stored = plane.request("POST", PATHS["ModelDeployment"] + DRY_RUN, minimal())
    assert stored["spec"] == {**minimal()["spec"], "replicas": 1}


def test_defaults_do_not_change_what_is_understood(plane):
    body = changed(
        minimal(),
        {
            f"spec.{part}": {}
            for part in ("engine", "workload", "gpus", "placement", "storage", "rollout",
                         "resize", "verify", "resources", "template")
        },
    )  # fmt: skip
    stored = plane.request("POST", PATHS["ModelDeployment"] + DRY_RUN, body)
    assert ModelDeployment.parse(stored).spec == ModelDeployment.parse(body).spec


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.what)
def test_a_mistake_is_refused_with_its_way_out(plane, mistake):
    with pytest.raises(ApiError) as refusal:
        plane.request("POST", PATHS["ModelDeployment"] + DRY_RUN, mistake.body())
    assert refusal.value.code == 422
    assert mistake.rule.message in str(refusal.value)


@pytest.mark.parametrize("what", RIGHT)
def test_what_people_write_is_taken(plane, what):
    plane.request("POST", PATHS["ModelDeployment"] + DRY_RUN, changed(minimal(), RIGHT[what]))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.replicas", -1),
        ("spec.replicas", "2"),
        ("spec.engine.version", 0.33),
        ("spec.engine.kind", "sglang"),
        ("spec.workload.maxModelLen", {"min": 0}),
        ("spec.workload.prefer", "context"),
        ("spec.gpus.kvCacheDtype", "int4"),
        ("spec.model", {"revision": "main"}),
        ("spec.resources.requests", {"memory": "much"}),
    ],
)
def test_the_parser_refuses_what_the_api_server_refuses(plane, path, value):
    body = changed(minimal(), {path: value})
    with pytest.raises(ApiError):
        plane.request("POST", PATHS["ModelDeployment"] + DRY_RUN, body)
    with pytest.raises(InvalidSpecError):
        ModelDeployment.parse(body)


def test_an_unknown_field_is_refused_by_strict_validation_and_pruned_without(plane):
    body = changed(minimal(), {"spec.workload.maxModelLength": 5})
    with pytest.raises(ApiError, match="maxModelLength"):
        plane.request("POST", PATHS["ModelDeployment"] + DRY_RUN, body)
    stored = plane.request("POST", PATHS["ModelDeployment"] + "?dryRun=All", body)
    assert "maxModelLength" not in stored["spec"]["workload"]


def test_kubectl_shows_the_columns_and_scales(plane):
    sample = model_deployment()
    path = PATHS["ModelDeployment"]
    stored = plane.request("POST", path, sample)
    plane.request("PUT", f"{path}/qwen/status", {**stored, "status": sample["status"]})
    header, row = plane.kubectl("get", "mdl").splitlines()
    assert header.split() == [
        "NAME", "MODEL", "GPU", "GPUS", "TP", "CONTEXT", "SEQS", "READY", "REASON", "AGE",
    ]  # fmt: skip
    assert row.split()[:9] == [
        "qwen", "Qwen3-32B", "NVIDIA-L40S", "2", "2", "40960", "32", "2/2", "Available",
    ]  # fmt: skip
    wide = plane.kubectl("get", "ai", "-o", "wide").splitlines()[-1]
    assert "nvidia-l40s-8" in wide
    plane.kubectl("scale", "mdl/qwen", "--replicas=3")
    assert plane.request("GET", f"{path}/qwen")["spec"]["replicas"] == 3
    scale = plane.request("GET", f"{path}/qwen/scale")
    assert scale["status"]["selector"] == sample["status"]["selector"]
    plane.request("DELETE", f"{path}/qwen")
