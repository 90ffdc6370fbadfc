"""What the chart renders, and that a real API server takes every variation of it."""

from pathlib import Path

import pytest
import yaml

from world.controlplane import CommandError, Plane

pytestmark = pytest.mark.plane

REPOSITORY = Path(__file__).parents[2]
CHART = REPOSITORY / "charts" / "shipfitter"
NAMESPACE = "shipfitter"
PRIVILEGED = ("agent.privileged=true", "agent.namespace=gpu-agents")

EVERYTHING = (
    *PRIVILEGED,
    "agent.driverRoot=/home/kubernetes/bin/nvidia",
    "agent.runtimeClassName=nvidia",
    "agent.priorityClassName=system-node-critical",
    "agent.nodeSelector.gpus=yes",
    "agent.extraEnv[0].name=A,agent.extraEnv[0].value=b",
    "operator.extraEnv[0].name=A,operator.extraEnv[0].value=b",
    "operator.podAnnotations.a=b",
    "operator.podLabels.a=b",
    "hub.endpoint=http://hub.local",
    "capacity.labelNodes=true",
    "operator.readPodLogs=true",
    "watchNamespaces={team-a,team-b}",
    "imagePullSecrets[0].name=registry",
)


@pytest.fixture(scope="module")
def plane():
    with Plane() as started:
        for name in (NAMESPACE, "team-a", "team-b", "gpu-agents"):
            started.kubectl("create", "namespace", name)
        started.kubectl(
            *("label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted")
        )
        yield started


def sets(values):
    flags = {True: "--set-json", False: "--set"}
    return [word for value in values for word in (flags[value.endswith("=[]")], value)]


def render(plane, *values):
    text = plane.helm("template", "shipfitter", CHART, "-n", NAMESPACE, *sets(values))
    return [each for each in yaml.safe_load_all(text) if each]


def find(manifests, kind, name):
    (found,) = [m for m in manifests if (m["kind"], m["metadata"]["name"]) == (kind, name)]
    return found


def pod_of(manifests, kind, name):
    return find(manifests, kind, name)["spec"]["template"]


def test_the_linter_has_nothing_to_say(plane):
    said = plane.helm("lint", "--strict", CHART, *sets(EVERYTHING))
    assert "0 chart(s) failed" in said


def test_the_chart_installs_the_repositorys_kinds(plane):
    """Through a link, which helm follows: there is one copy."""
    for path in (REPOSITORY / "crds").glob("*.yaml"):
        want = yaml.safe_load(path.read_text())
        found = find(render(plane), "CustomResourceDefinition", want["metadata"]["name"])
        assert found["spec"] == want["spec"]
        assert found["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"


@pytest.mark.parametrize(
    "values",
    [
        pytest.param((), id="the defaults"),
        pytest.param(EVERYTHING, id="everything on"),
        pytest.param(("agent.enabled=false", "crds.install=false"), id="the operator alone"),
        pytest.param(("agent.gpuNodeLabels=[]", "agent.tolerations=[]"), id="agents everywhere"),
        pytest.param(("image.digest=sha256:" + "a" * 64,), id="an image by digest"),
        pytest.param(("agent.maxUnavailable=3", "agent.runAsUser=0"), id="an agent as root"),
    ],
)
def test_the_api_server_takes_it_with_strict_field_validation(plane, values):
    text = plane.helm("template", "shipfitter", CHART, "-n", NAMESPACE, *sets(values))
    plane.kubectl(
        *("apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-"), stdin=text
    )


@pytest.mark.parametrize(
    ("values", "want"),
    [
        pytest.param(("operator.repicas=2",), "additional properties 'repicas'", id="a typo"),
        pytest.param(("hub.endpoint=ftp://x",), "does not match pattern", id="no http"),
        pytest.param(("agent.maxUnavailable=0",), "maxUnavailable", id="an update that stands"),
        pytest.param(
            ("agent.privileged=true",), "Give it its own with agent.namespace", id="no namespace"
        ),
        pytest.param(
            ("agent.podResources=true",), "the kubelet's socket lies on the host", id="no room"
        ),
        pytest.param(
            ("agent.driverRoot=/opt/nvidia",), "needs agent.privileged=true", id="no privilege"
        ),
    ],
)
def test_a_wrong_value_is_refused_with_a_sentence(plane, values, want):
    with pytest.raises(CommandError, match=want):
        render(plane, *values)


@pytest.mark.parametrize(
    ("kind", "name"),
    [("Deployment", "shipfitter-operator"), ("DaemonSet", "shipfitter-agent")],
    ids=["the operator", "the agent"],
)
def test_pods_are_allowed_where_pod_security_is_restricted(plane, kind, name):
    pod = pod_of(render(plane), kind, name)
    plane.kubectl("create", "serviceaccount", name, "-n", NAMESPACE)  # admission asks for it
    try:
        body = {**pod, "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "try"}}
        plane.request("POST", f"/api/v1/namespaces/{NAMESPACE}/pods?dryRun=All", body)
    finally:
        plane.kubectl("delete", "serviceaccount", name, "-n", NAMESPACE)


def test_an_agent_that_asks_the_kubelet_is_root_with_nothing_more(plane):
    values = ("agent.podResources=true", "agent.namespace=gpu-agents")
    pod = pod_of(render(plane, *values), "DaemonSet", "shipfitter-agent")["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsUser"] == 0
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    (mount,) = [m for m in container["volumeMounts"] if m["name"] == "pod-resources"]
    assert mount["readOnly"]
    (path,) = [e for e in container["env"] if e["name"] == "SHIPFITTER_AGENT_POD_RESOURCES"]
    assert path["value"] == f"{mount['mountPath']}/kubelet.sock"


def test_the_operator_is_one_and_reads_its_settings_from_the_environment(plane):
    manifests = render(plane, *EVERYTHING, "operator.settleSeconds=2.5")
    deployment = find(manifests, "Deployment", "shipfitter-operator")["spec"]
    (container,) = deployment["template"]["spec"]["containers"]
    environment = {each["name"]: each.get("value") for each in container["env"]}
    assert (deployment["replicas"], deployment["strategy"]) == (1, {"type": "Recreate"})
    assert container["args"] == ["operator"]
    assert environment["SHIPFITTER_ENGINE_IMAGE"] == "vllm/vllm-openai:v0.33.0"
    assert environment["SHIPFITTER_IMAGE"] == container["image"], "Jobs run what we run"
    assert environment["SHIPFITTER_WATCH_NAMESPACES"] == "team-a,team-b"
    assert environment["SHIPFITTER_SETTLE_SECONDS"] == "2.5"
    assert environment["HF_ENDPOINT"] == "http://hub.local"
    assert environment["A"] == "b"


def test_the_agent_takes_no_gpu_and_has_a_short_token(plane):
    pod = pod_of(render(plane), "DaemonSet", "shipfitter-agent")["spec"]
    (container,) = pod["containers"]
    (token,) = [each["projected"] for each in pod["volumes"] if each["name"] == "token"]
    assert pod["automountServiceAccountToken"] is False
    assert token["sources"][0]["serviceAccountToken"]["expirationSeconds"] == 3600
    assert "nvidia.com/gpu" not in str(container["resources"])
    assert not [each for each in pod["volumes"] if "hostPath" in each]


def test_narrowing_the_namespaces_narrows_what_has_one(plane):
    manifests = render(plane, "watchNamespaces={team-a,team-b}")
    wide = find(manifests, "ClusterRole", "shipfitter-operator")["rules"]
    narrow = [
        each["metadata"]["namespace"]
        for each in manifests
        if each["kind"] == "Role" and each["metadata"]["name"] == "shipfitter-operator"
    ]
    assert narrow == ["team-a", "team-b"]
    kinds = {resource for rule in wide for resource in rule["resources"]}
    assert kinds == {
        *("nodes", "pods", "nodepools", "machinedeployments", "machinesets"),
        *("resourceslices", "resourceclaims", "deviceclasses"),
        *("gpunodes", "calibrations", "calibrations/status"),
    }


def test_names_follow_the_agents_namespace_everywhere(plane):
    manifests = render(plane, *PRIVILEGED)
    (condition,) = find(manifests, "ValidatingAdmissionPolicy", "shipfitter-own-node")["spec"][
        "matchConditions"
    ]
    account = find(manifests, "ServiceAccount", "shipfitter-agent")["metadata"]
    (subject,) = find(manifests, "ClusterRoleBinding", "shipfitter-agent")["subjects"]
    want = f"system:serviceaccount:{account['namespace']}:{account['name']}"
    assert condition["expression"] == f"request.userInfo.username == '{want}'"
    assert f"system:serviceaccount:{subject['namespace']}:{subject['name']}" == want
    daemon_set = find(manifests, "DaemonSet", "shipfitter-agent")
    assert daemon_set["metadata"]["namespace"] == account["namespace"]
    assert daemon_set["spec"]["template"]["spec"]["serviceAccountName"] == account["name"]
