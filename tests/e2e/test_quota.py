"""What a namespace allows: quotas on GPUs, quotas that want limits, and policies that say no."""

import pytest

from e2e.stories import L40S, LLAMA_8B, flag, model_deployment, says, serve, serving, stays, uids

pytestmark = pytest.mark.plane
GPU = "requests.nvidia.com/gpu"
QUOTAS = "/api/v1/namespaces/default/resourcequotas"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
BINDINGS = f"{POLICIES.removesuffix('policies')}policybindings"


@pytest.fixture
def quota(stage):
    """Makes a ResourceQuota; it is gone afterwards."""

    def made(**hard):
        stage.api.post(
            QUOTAS,
            {
                "apiVersion": "v1",
                "kind": "ResourceQuota",
                "metadata": {"name": "team"},
                "spec": {"hard": hard},
            },
        )

    yield made
    stage.api.delete(f"{QUOTAS}/team")


def test_a_quota_bounds_the_replicas_and_more_follow_as_soon_as_it_is_raised(stage, quota):
    quota(**{GPU: "2"})
    stage.add_gpu_node("l40s-1", L40S, 4)
    stage.apply(model_deployment("llama", LLAMA_8B, replicas=3))
    told = says(stage, "llama", "Available", "QuotaExceeded")
    assert told["message"] == (
        "2 of 3 replicas serve; ResourceQuota team allows 2 nvidia.com/gpu: raise its "
        f"{GPU} to 3 for all 3 replicas"
    )
    assert stays(lambda: len(stage.pods("llama"))) == 2
    failed = [
        e
        for e in stage.objects("events")
        if e["reason"] == "FailedCreate" and e["involvedObject"]["name"].startswith("llama")
    ]
    assert not failed, "no pod was asked for that the quota refuses"
    stage.change("llama", {"workload": {"maxNumSeqs": {"preferred": 32}}})
    stage.eventually(
        lambda: (
            len(p := serving(stage, "llama")) == 2
            and {flag(pod, "max-num-seqs") for pod in p} == {"32"}
        ),
        what="under a full quota one replica is replaced after the other",
    )
    before = uids(serving(stage, "llama"))
    stage.api.patch(f"{QUOTAS}/team", {"spec": {"hard": {GPU: "3"}}})
    stage.eventually(lambda: stage.ready("llama"), what="all three serve")
    assert before < uids(serving(stage, "llama"))


def test_a_quota_on_memory_wants_limits_and_it_is_said_which(stage, quota):
    quota(**{"limits.memory": "400Gi"})
    stage.add_gpu_node("l40s-1", L40S, 1)
    stage.apply(model_deployment("llama", LLAMA_8B))
    told = says(stage, "llama", "Ready", "LimitsRequired")
    assert "ResourceQuota team takes no pod without limits.memory" in told["message"]
    stage.change("llama", {"resources": {"limits": {"memory": "64Gi"}}})
    stage.eventually(lambda: stage.ready("llama"), what="it serves")


def test_a_policy_that_refuses_the_workload_is_quoted_until_it_lets_it_pass(stage):
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "no-more-than-one"},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": ["apps"],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE", "UPDATE"],
                        "resources": ["deployments"],
                    }
                ]
            },
            "validations": [
                {
                    "expression": "object.metadata.namespace != 'default' || "
                    "object.spec.replicas <= 1",
                    "message": "one replica is enough here",
                }
            ],
        },
    }
    stage.api.post(POLICIES, policy)
    stage.api.post(
        BINDINGS,
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": "no-more-than-one"},
            "spec": {"policyName": "no-more-than-one", "validationActions": ["Deny"]},
        },
    )
    stage.add_gpu_node("l40s-1", L40S, 2)
    try:
        serve(stage, "first", LLAMA_8B)  # the policy is in force a moment later
        stage.delete("modeldeployment", "first")
        stage.eventually(lambda: not stage.objects("pods"), what="it is gone")
        stage.apply(model_deployment("llama", LLAMA_8B, replicas=2))
        told = says(stage, "llama", "Ready", "ApplyRefused")
        assert "one replica is enough here" in told["message"]
        assert stage.condition("llama", "Stalled")["status"] == "True"
        assert stage.condition("llama", "Planned")["status"] == "True"
        stage.change("llama", {"replicas": 1})
        stage.eventually(lambda: stage.ready("llama"), what="it serves")
        assert stage.condition("llama", "Stalled")["status"] == "False"
    finally:
        stage.api.delete(f"{BINDINGS}/no-more-than-one")
        stage.api.delete(f"{POLICIES}/no-more-than-one")
