"""The pod template, part by part."""

import pytest

from shipfitter.core.inventory import Taint
from shipfitter.render.pod import engine_container, pod_template
from shipfitter.units import GIB
from unit.render.plans import BUDGET, IMAGE, ranks, resource, sizing


def template(*, spec=None, hub_endpoint="", **changes):
    return pod_template(
        resource(**(spec or {})),
        sizing(**changes),
        "llama-1a2b3c4d",
        image=IMAGE,
        hub_endpoint=hub_endpoint,
    )


def engine(**changes):
    return engine_container(template(**changes))


def variables(**changes):
    return {each["name"]: each for each in engine(**changes)["env"]}


def test_what_every_pod_has():
    pod = template()["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False
    assert pod["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}}
    container = engine()
    assert container["image"] == IMAGE
    assert container["command"] == ["vllm", "serve"]
    assert container["terminationMessagePolicy"] == "FallbackToLogsOnError"
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }


def test_labels_tell_who_serves():
    assert template()["metadata"]["labels"] == {
        "app.kubernetes.io/name": "vllm",
        "app.kubernetes.io/instance": "llama",
        "app.kubernetes.io/component": "engine",
        "app.kubernetes.io/managed-by": "shipfitter",
        "shipfitter.dev/modeldeployment": "llama",
        "shipfitter.dev/variant": "llama-1a2b3c4d",
        "shipfitter.dev/serves": "true",
    }


def test_the_grace_period_holds_pre_stop_and_drain():
    assert template()["spec"]["terminationGracePeriodSeconds"] == 10 + 60 + 10
    longer = template(spec={"spec__engine__args": ["--shutdown-timeout=300"]})
    assert longer["spec"]["terminationGracePeriodSeconds"] == 10 + 300 + 10
    assert engine()["lifecycle"] == {"preStop": {"sleep": {"seconds": 10}}}


@pytest.mark.parametrize(
    ("checkpoint_bytes", "want_seconds"),
    [
        pytest.param(16_060_522_496, 600, id="8B: ten minutes at least"),
        pytest.param(140_000_000_000, 1760, id="70B: twelve minutes to load, with safety"),
        pytest.param(0, 600, id="nothing to load"),
    ],
)
def test_the_startup_budget_follows_the_weights(checkpoint_bytes, want_seconds):
    probe = engine(facts={"checkpoint_bytes": checkpoint_bytes})["startupProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] == want_seconds
    assert probe["httpGet"] == {"path": "/health", "port": 8000}


def test_liveness_is_patient():
    probe = engine()["livenessProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] >= 120


@pytest.mark.parametrize(
    ("changes", "want_requests", "want_limits"),
    [
        pytest.param(
            {},
            # 4 base + 2 for a GPU + 2 shared memory + 8 for loading
            {"cpu": "3", "memory": "16384Mi", "ephemeral-storage": "16849Mi"},
            {"nvidia.com/gpu": "1"},
            id="one GPU, weights fetched by the pod",
        ),
        pytest.param(
            {"settings": {"layout": ranks(8)}, "facts": {"checkpoint_bytes": 200 * GIB},
             "uri": "pvc://models/big"},
            # 4 + 2 × 8 + 8 shared memory + a tenth of 200
            {"cpu": "10", "memory": f"{48 * 1024}Mi"},
            {"nvidia.com/gpu": "8"},
            id="eight GPUs, weights on a claim",
        ),
        pytest.param(
            {"pool": {"host_memory_bytes": 64 * GIB}},
            # 90 % of an eighth of 64 GiB
            {"cpu": "3", "memory": "7373Mi", "ephemeral-storage": "16849Mi"},
            {"nvidia.com/gpu": "1"},
            id="never more than the share of the node",
        ),
        pytest.param(
            {"pool": {"host_memory_bytes": 0}},
            {"cpu": "3", "memory": "16384Mi", "ephemeral-storage": "16849Mi"},
            {"nvidia.com/gpu": "1"},
            id="a node whose memory nobody knows",
        ),
        pytest.param(
            {"pool": {"resource_name": "nvidia.com/mig-3g.40gb", "gpus_per_node": 2}},
            {"cpu": "3", "memory": "16384Mi", "ephemeral-storage": "16849Mi"},
            {"nvidia.com/mig-3g.40gb": "1"},
            id="a MIG device has a resource of its own",
        ),
        pytest.param(
            {"pool": {"unified": True, "gpus_per_node": 1, "host_memory_bytes": 512 * GIB}},
            {"cpu": "3", "memory": f"{-(-(16 * GIB + BUDGET.requested_bytes) // 2**20)}Mi",
             "ephemeral-storage": "16849Mi"},
            {"nvidia.com/gpu": "1"},
            id="unified memory is host memory",
        ),
        pytest.param(
            {"spec": {"spec__storage__cacheClaim": "hf-cache"}},
            {"cpu": "3", "memory": "16384Mi"},
            {"nvidia.com/gpu": "1"},
            id="a cache claim leaves the node's disk alone",
        ),
        pytest.param(
            {"spec": {"spec__resources": {
                "requests": {"cpu": 4}, "limits": {"memory": "8Gi"}}}},
            {"cpu": 4, "ephemeral-storage": "16849Mi"},
            {"memory": "8Gi", "nvidia.com/gpu": "1"},
            id="the user's replace ours by name, and a limit is its own request",
        ),
        pytest.param(
            {"spec": {"spec__gpus__allocation": "DRA"}},
            {"cpu": "3", "memory": "16384Mi", "ephemeral-storage": "16849Mi"},
            {},
            id="a claim instead of a count",
        ),
    ],
)  # fmt: skip
def test_resources(changes, want_requests, want_limits):
    resources = engine(**changes)["resources"]
    assert (resources["requests"], resources["limits"]) == (want_requests, want_limits)


def test_a_claim_is_named_by_pod_and_container():
    pod = template(spec={"spec__gpus__allocation": "DRA"})
    (claim,) = pod["spec"]["resourceClaims"]
    assert engine_container(pod)["resources"]["claims"] == [{"name": claim["name"]}]
    assert claim["resourceClaimTemplateName"].startswith("llama-gpus-")


@pytest.mark.parametrize(("gpus", "want"), [(1, "2048Mi"), (4, "5120Mi"), (8, "8192Mi")])
def test_shared_memory_grows_with_the_ranks(gpus, want):
    volumes = template(settings={"layout": ranks(gpus)})["spec"]["volumes"]
    assert volumes[0] == {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": want}}


def terms(pod):
    affinity = pod["spec"]["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    return [(e["key"], e["operator"], *e["values"]) for e in term["matchExpressions"]]


def test_affinity_selects_the_pool_and_keeps_off_shared_gpus():
    assert terms(template()) == [
        ("kubernetes.io/arch", "In", "amd64"),
        ("nvidia.com/gpu.product", "In", "NVIDIA-L40S"),
        ("nvidia.com/gpu.sharing-strategy", "NotIn", "mps", "time-slicing"),
    ]


@pytest.mark.parametrize(
    "pool",
    [
        {"sharing": "time-slicing", "selector": {"a": "b"}},
        {"sharing": "none", "selector": {"nvidia.com/gpu.sharing-strategy": "none"}},
    ],
)
def test_affinity_says_sharing_once(pool):
    assert len(terms(template(pool=pool))) == 1


def test_a_shared_pool_without_labels_has_no_affinity():
    assert "affinity" not in template(pool={"sharing": "mps", "selector": {}})["spec"]


@pytest.mark.parametrize(
    ("taints", "want"),
    [
        pytest.param((), [], id="the usual two are always borne"),
        pytest.param((Taint(key="nvidia.com/gpu", value="x"),), [], id="a usual one with a value"),
        pytest.param(
            (Taint(key="nvidia.com/gpu", effect="NoExecute"),),
            [{"key": "nvidia.com/gpu", "operator": "Equal", "value": "", "effect": "NoExecute"}],
            id="a GPU taint with another effect",
        ),
        pytest.param((Taint(key="dedicated", value="ml"),), [], id="a taint with a meaning"),
        pytest.param((Taint(key="sku", value="gpu"),), [], id="the usual taint of a provider"),
        pytest.param(
            (Taint(key="cloud.google.com/gke-accelerator", value="l4"),),
            [
                {
                    "key": "cloud.google.com/gke-accelerator",
                    "operator": "Equal",
                    "value": "l4",
                    "effect": "NoSchedule",
                }
            ],
            id="a provider's taint on the pool",
        ),
    ],
)
def test_tolerations(taints, want):
    usual = [
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "sku", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"},
    ]
    assert template(pool={"taints": taints})["spec"]["tolerations"] == usual + want


def test_the_users_placement():
    constraint = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
    }
    own = {"labelSelector": {"matchLabels": {"a": "b"}}}
    pod = template(
        spec={
            "spec__placement": {
                "nodeSelector": {"zone": "b", "disk": "nvme"},
                "tolerations": [
                    {"key": "team", "value": "ml", "effect": "NoSchedule"},
                    {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
                ],
                "topologySpreadConstraints": [constraint, {**constraint, **own}],
                "priorityClassName": "serving",
            }
        }
    )["spec"]
    assert pod["nodeSelector"] == {"disk": "nvme", "zone": "b"}
    assert pod["priorityClassName"] == "serving"
    assert pod["tolerations"][2:] == [{"key": "team", "value": "ml", "effect": "NoSchedule"}]
    ours = {
        "labelSelector": {
            "matchLabels": {
                "shipfitter.dev/modeldeployment": "llama",
                "shipfitter.dev/serves": "true",
            }
        }
    }
    assert pod["topologySpreadConstraints"] == [{**constraint, **ours}, {**constraint, **own}]


def test_accounts_and_pull_secrets():
    pod = template(
        spec={
            "spec__serviceAccountName": "engine",
            "spec__imagePullSecrets": [{"name": "registry"}],
        }
    )["spec"]
    assert pod["serviceAccountName"] == "engine"
    assert pod["imagePullSecrets"] == [{"name": "registry"}]


def test_everything_is_written_below_two_mounts():
    mounts = {each["mountPath"] for each in engine()["volumeMounts"] if not each.get("readOnly")}
    assert mounts == {"/dev/shm", "/cache", "/tmp"}
    paths = [name for name in variables() if name.endswith(("HOME", "ROOT", "DIR", "PATH"))]
    assert len(paths) >= 8
    for name in paths:
        if name != "VLLM_LOGGING_CONFIG_PATH":
            assert variables()[name]["value"].startswith(("/cache", "/tmp"))


def test_a_cache_claim_holds_weights_and_compiled_code_but_no_sockets():
    pod = template(spec={"spec__storage__cacheClaim": "hf-cache"})
    volumes = {each["name"]: each for each in pod["spec"]["volumes"]}
    assert volumes["cache"]["persistentVolumeClaim"] == {"claimName": "hf-cache"}
    assert volumes["scratch"] == {"name": "scratch", "emptyDir": {}}


def test_a_model_on_a_claim_is_mounted_for_reading():
    pod = template(uri="pvc://models/llama")
    volumes = {each["name"]: each for each in pod["spec"]["volumes"]}
    assert volumes["model"]["persistentVolumeClaim"] == {"claimName": "models", "readOnly": True}
    mounts = {each["name"]: each for each in engine_container(pod)["volumeMounts"]}
    assert mounts["model"] == {"name": "model", "mountPath": "/models", "readOnly": True}


def test_the_token_comes_from_its_secret():
    spec = {"spec__model__tokenSecretRef": {"name": "hf"}}
    assert variables(spec=spec)["HF_TOKEN"] == {
        "name": "HF_TOKEN",
        "valueFrom": {"secretKeyRef": {"name": "hf", "key": "token"}},
    }
    assert "HF_TOKEN" not in variables()


def test_the_charts_hub_is_used():
    assert variables(hub_endpoint="http://hub")["HF_ENDPOINT"]["value"] == "http://hub"
    assert "HF_ENDPOINT" not in variables()


def test_logging_that_the_user_switched_off_gets_no_file():
    spec = {"spec__engine__env": [{"name": "VLLM_CONFIGURE_LOGGING", "value": "0"}]}
    assert "VLLM_LOGGING_CONFIG_PATH" not in variables(spec=spec)


def test_the_users_variables_replace_ours():
    spec = {"spec__engine__env": [{"name": "HOME", "value": "/x"}, {"name": "A", "value": ""}]}
    found = variables(spec=spec)
    assert found["HOME"]["value"] == "/x"
    assert found["A"] == {"name": "A", "value": ""}
    assert len(engine(spec=spec)["env"]) == len(found)


def test_the_overlay_lies_on_top():
    spec = {
        "spec__template": {
            "metadata": {"annotations": {"a": "b"}},
            "spec": {
                "runtimeClassName": "nvidia",
                "containers": [
                    {"name": "engine", "securityContext": {"runAsUser": 1000}},
                    {"name": "proxy", "image": "proxy"},
                ],
            },
        }
    }
    pod = template(spec=spec)
    assert pod["metadata"]["annotations"] == {"a": "b"}
    assert pod["spec"]["runtimeClassName"] == "nvidia"
    assert [each["name"] for each in pod["spec"]["containers"]] == ["engine", "proxy"]
    context = engine_container(pod)["securityContext"]
    assert context["runAsUser"] == 1000
    assert context["allowPrivilegeEscalation"] is False


def test_the_same_plan_is_rendered_the_same_whatever_the_order_of_its_labels():
    backwards = {"kubernetes.io/arch": "amd64", "nvidia.com/gpu.product": "NVIDIA-L40S"}
    assert template(pool={"selector": backwards}) == template()
