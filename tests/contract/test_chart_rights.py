"""What each ServiceAccount of the chart may do, as the API server's authorizer sees it."""

import pytest

pytestmark = pytest.mark.plane
NAMESPACE = "shipfitter"
OPERATOR = f"system:serviceaccount:{NAMESPACE}:shipfitter-operator"
GROUPS = {
    "gpunodes": "shipfitter.dev",
    "calibrations": "shipfitter.dev",
    "modeldeployments": "shipfitter.dev",
    "resourceslices": "resource.k8s.io",
    "nodepools": "karpenter.sh",
    "machinedeployments": "cluster.x-k8s.io",
    "deviceclasses": "resource.k8s.io",
    "resourceclaims": "resource.k8s.io",
    "resourceclaimtemplates": "resource.k8s.io",
    "deployments": "apps",
    "leaderworkersets": "leaderworkerset.x-k8s.io",
    "jobs": "batch",
    "poddisruptionbudgets": "policy",
    "leases": "coordination.k8s.io",
}
AGENT = f"system:serviceaccount:{NAMESPACE}:shipfitter-agent"


@pytest.mark.parametrize(
    ("user", "verb", "resource", "want"),
    [
        pytest.param(OPERATOR, "list", "nodes", True, id="operator: reads nodes"),
        pytest.param(OPERATOR, "patch", "nodes", False, id="operator: leaves nodes alone"),
        pytest.param(OPERATOR, "watch", "gpunodes", True, id="operator: reads GPUNodes"),
        pytest.param(OPERATOR, "patch", "gpunodes", False, id="operator: never writes one"),
        pytest.param(OPERATOR, "list", "resourceslices", True, id="operator: reads slices"),
        pytest.param(OPERATOR, "list", "nodepools", True, id="operator: reads NodePools"),
        pytest.param(OPERATOR, "list", "machinedeployments", True, id="operator: reads groups"),
        pytest.param(OPERATOR, "patch", "nodepools", False, id="operator: makes no nodes"),
        pytest.param(OPERATOR, "list", "deviceclasses", True, id="operator: reads classes"),
        pytest.param(OPERATOR, "list", "resourceclaims", True, id="operator: reads claims of all"),
        pytest.param(OPERATOR, "patch", "resourceclaims", False, id="operator: writes no claim"),
        pytest.param(OPERATOR, "list", "pods", True, id="operator: reads pods"),
        pytest.param(OPERATOR, "patch", "pods", True, id="operator: sets deletion costs"),
        pytest.param(OPERATOR, "delete", "pods", False, id="operator: deletes no pods"),
        pytest.param(OPERATOR, "get", "pods/log", False, id="operator: reads no logs"),
        pytest.param(OPERATOR, "create", "pods/exec", False, id="operator: enters no pod"),
        pytest.param(OPERATOR, "patch", "deployments", True, id="operator: deploys"),
        pytest.param(OPERATOR, "patch", "leaderworkersets", True, id="operator: groups"),
        pytest.param(OPERATOR, "create", "jobs", True, id="operator: inspects"),
        pytest.param(OPERATOR, "patch", "services", True, id="operator: Services"),
        pytest.param(OPERATOR, "patch", "poddisruptionbudgets", True, id="operator: budgets"),
        pytest.param(
            OPERATOR, "patch", "resourceclaimtemplates", True, id="operator: claim templates"
        ),
        pytest.param(OPERATOR, "list", "persistentvolumeclaims", True, id="operator: reads claims"),
        pytest.param(OPERATOR, "list", "resourcequotas", True, id="operator: reads quotas"),
        pytest.param(OPERATOR, "create", "events", True, id="operator: posts events"),
        pytest.param(OPERATOR, "create", "calibrations", True, id="operator: calibrates"),
        pytest.param(OPERATOR, "patch", "modeldeployments/status", True, id="operator: status"),
        pytest.param(OPERATOR, "patch", "modeldeployments", False, id="operator: no user's wish"),
        pytest.param(OPERATOR, "delete", "modeldeployments", False, id="operator: deletes none"),
        pytest.param(OPERATOR, "get", "secrets", False, id="operator: no secret"),
        pytest.param(OPERATOR, "list", "secrets", False, id="operator: no list of secrets"),
        pytest.param(OPERATOR, "create", "leases", False, id="operator: no foreign Lease"),
        pytest.param(AGENT, "create", "gpunodes", True, id="agent: creates its object"),
        pytest.param(AGENT, "patch", "gpunodes/status", True, id="agent: writes its status"),
        pytest.param(AGENT, "update", "gpunodes", False, id="agent: applies only"),
        pytest.param(AGENT, "list", "pods", False, id="agent: reads no pods"),
        pytest.param(AGENT, "get", "secrets", False, id="agent: no secret"),
    ],
)
def test_rights(installed_plane, user, verb, resource, want):
    assert can(installed_plane, user, verb, resource) is want


def test_the_operator_has_its_lease_in_its_own_namespace(installed_plane):
    def may(verb, name=""):
        return can(installed_plane, OPERATOR, verb, "leases", namespace=NAMESPACE, name=name)

    assert may("create")
    assert may("patch", "shipfitter-operator")
    assert not may("patch", "another")


def test_an_editor_of_a_namespace_works_with_model_deployments(installed_plane):
    installed_plane.kubectl("create", "rolebinding", "ann", "--clusterrole=edit", "--user=ann")
    assert can(installed_plane, "ann", "create", "modeldeployments")
    assert can(installed_plane, "ann", "patch", "modeldeployments/scale")
    assert not can(installed_plane, "ann", "patch", "modeldeployments/status")


def can(plane, user, verb, resource, *, namespace="default", name=""):
    """What the API server's authorizer says."""
    resource, _, subresource = resource.partition("/")
    groups = {"system:serviceaccounts", "system:authenticated"}
    attributes = {
        "namespace": namespace,
        "verb": verb,
        "group": GROUPS.get(resource, ""),
        "resource": resource,
        "subresource": subresource,
        "name": name,
    }
    review = {"spec": {"user": user, "groups": sorted(groups), "resourceAttributes": attributes}}
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    return plane.request("POST", path, review)["status"]["allowed"]
