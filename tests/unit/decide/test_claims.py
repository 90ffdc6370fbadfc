"""Allocation by claims: which nodes count, what is applied, and what is pruned."""

from dataclasses import replace

import pytest

from builders_decide import Settled, condition, manifests, mdl, serving, world
from builders_plan import node
from shipfitter.decide import decide

BY_CLAIM = {"gpus": {"allocation": "DRA"}}


def dra_node(name="d", product="L40S", count=1, **changes):
    """A node whose GPUs only claims get."""
    made = node(name, product, count)
    (first, *_) = made.devices
    return replace(
        made,
        resource_name=f"gpu.nvidia.com/{first.product}",
        by_claim=True,
        from_slices=True,
        **changes,
    )


def test_the_template_comes_with_the_workload_that_names_it():
    outcome = decide(mdl(**BY_CLAIM), world(dra_node()))
    (template,) = manifests(outcome, "ResourceClaimTemplate")
    (deployment,) = manifests(outcome, "Deployment")
    pod = deployment["spec"]["template"]
    assert pod["spec"]["resourceClaims"] == [
        {"name": "gpus", "resourceClaimTemplateName": template["metadata"]["name"]}
    ]
    assert pod["metadata"]["annotations"]["shipfitter.dev/claims"] == "gpu.nvidia.com/NVIDIA-L40S=1"
    labels = template["spec"]["metadata"]["labels"]
    assert labels["shipfitter.dev/modeldeployment"] == "llama"


@pytest.mark.parametrize(
    ("spec", "nodes", "want"),
    [
        pytest.param(
            {}, [dra_node()], "set spec.gpus.allocation to DRA", id="claims only, a plain wish"
        ),
        pytest.param(
            BY_CLAIM, [node("a", "L40S")], "to DevicePlugin", id="a plugin only, a wish by claim"
        ),
        pytest.param({}, [], "the cluster offers no GPU", id="no GPU at all"),
    ],
)
def test_gpus_that_are_there_only_for_the_other_way_to_ask(spec, nodes, want):
    outcome = decide(mdl(**spec), world(*nodes))
    planned = condition(outcome, "Planned")
    assert planned["reason"] == "NoGpuCapacity"
    assert want in planned["message"]


@pytest.mark.parametrize("nodes", [[], [node("a", "L40S")]], ids=["without GPUs", "with GPUs"])
def test_a_cluster_that_is_too_old_for_claims_says_so(nodes):
    planned = condition(decide(mdl(**BY_CLAIM), world(*nodes, has_claims=False)), "Planned")
    assert planned["reason"] == "NoGpuCapacity"
    assert "does not serve resource.k8s.io/v1 (Kubernetes does from 1.34 on)" in planned["message"]


def test_each_wish_counts_the_nodes_it_can_have():
    nodes = (dra_node("d", "L4"), node("a", "L40S"))
    plain, claimed = decide(mdl(), world(*nodes)), decide(mdl(**BY_CLAIM), world(*nodes))
    assert plain.status["plan"]["variants"][0]["gpuProduct"] == "NVIDIA-L40S"
    assert claimed.status["plan"]["variants"][0]["gpuProduct"] == "NVIDIA-L4"


def test_templates_no_pod_can_need_are_pruned_once_all_is_quiet():
    settled = Settled(dra_node(), **BY_CLAIM)
    (template,) = manifests(settled.first, "ResourceClaimTemplate")
    templates = {template["metadata"]["name"]: "u1", "llama-gpus-0ld": "u2"}
    quiet = settled.decide(dra_node(), claim_templates=templates)
    assert [(each.kind, each.name, each.uid) for each in quiet.deletes] == [
        ("ResourceClaimTemplate", "llama-gpus-0ld", "u2")
    ]
    starting = (serving(settled.variant, "d", ready=False),)
    rolling = settled.decide(dra_node(), claim_templates=templates, pods=starting)
    assert not rolling.deletes, "a pod of the old one may have to be made anew"


def test_templates_go_when_the_wish_is_no_longer_for_claims():
    settled = Settled(node("a", "L40S"))
    quiet = settled.decide(node("a", "L40S"), claim_templates={"llama-gpus-0ld": "u2"})
    assert [each.name for each in quiet.deletes] == ["llama-gpus-0ld"]
