"""The engine's pod template."""

from typing import Any

from shipfitter.api.model_deployment import Allocation, ModelDeployment
from shipfitter.api.template_overlay import ENGINE_CONTAINER
from shipfitter.core.plan import Sizing
from shipfitter.render.args import COMMAND, ENGINE_PORT, drain_seconds, engine_args
from shipfitter.render.claim_template import CLAIM_NAME, claim_template_name
from shipfitter.render.config_map import TERMINATION_PATH
from shipfitter.render.environment import environment
from shipfitter.render.labels import (
    CLAIMS_ANNOTATION,
    SERVES_LABEL,
    VARIANT_LABEL,
    common_labels,
)
from shipfitter.render.overlay import overlaid
from shipfitter.render.placement import placement
from shipfitter.render.resources import engine_resources
from shipfitter.render.startup import PRE_STOP_SECONDS, grace_seconds, probes
from shipfitter.render.variant import gpus_per_pod
from shipfitter.render.volumes import downloads, volume_mounts, volumes


def pod_template(
    resource: ModelDeployment,
    sizing: Sizing,
    variant: str,
    *,
    image: str,
    hub_endpoint: str = "",
) -> dict[str, Any]:
    """The template of a pod that serves, with the user's overlay on top."""
    labels = {**common_labels(resource), VARIANT_LABEL: variant, SERVES_LABEL: "true"}
    metadata: dict[str, Any] = {"labels": labels}
    if resource.spec.gpus.allocation is Allocation.DRA:
        taken = f"{sizing.pool.resource_name}={gpus_per_pod(sizing)}"
        metadata["annotations"] = {CLAIMS_ANNOTATION: taken}
    template = {
        "metadata": metadata,
        "spec": _pod_spec(resource, sizing, image=image, hub_endpoint=hub_endpoint),
    }
    return overlaid(template, resource.spec.template)


def engine_container(template: dict[str, Any]) -> dict[str, Any]:
    """The engine among a template's containers."""
    containers: list[dict[str, Any]] = template["spec"]["containers"]
    return next(each for each in containers if each["name"] == ENGINE_CONTAINER)


def _pod_spec(
    resource: ModelDeployment, sizing: Sizing, *, image: str, hub_endpoint: str
) -> dict[str, Any]:
    spec = resource.spec
    fields: dict[str, Any] = {
        "automountServiceAccountToken": False,
        # Variables such as VLLM_PORT, made from Services, would be taken for the engine's own.
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": grace_seconds(drain_seconds(resource)),
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        **placement(resource, sizing),
        "containers": [_engine(resource, sizing, image=image, hub_endpoint=hub_endpoint)],
        "volumes": volumes(resource, sizing),
    }
    if spec.service_account_name:
        fields["serviceAccountName"] = spec.service_account_name
    if spec.image_pull_secrets:
        fields["imagePullSecrets"] = [{"name": each.name} for each in spec.image_pull_secrets]
    if spec.gpus.allocation is Allocation.DRA:
        template = claim_template_name(resource, sizing)
        fields["resourceClaims"] = [{"name": CLAIM_NAME, "resourceClaimTemplateName": template}]
    return fields


def _engine(
    resource: ModelDeployment, sizing: Sizing, *, image: str, hub_endpoint: str
) -> dict[str, Any]:
    weights_bytes = sizing.model.facts.checkpoint_bytes
    resources: dict[str, Any] = engine_resources(
        resource, sizing, downloads=downloads(resource, sizing)
    )
    if resource.spec.gpus.allocation is Allocation.DRA:
        resources["claims"] = [{"name": CLAIM_NAME}]
    return {
        "name": ENGINE_CONTAINER,
        "image": image,
        "command": list(COMMAND),
        "args": engine_args(resource, sizing),
        "env": environment(resource, hub_endpoint=hub_endpoint),
        "ports": [{"name": "http", "containerPort": ENGINE_PORT}],
        "resources": resources,
        "volumeMounts": volume_mounts(resource, sizing),
        **probes(weights_bytes),
        "lifecycle": {"preStop": {"sleep": {"seconds": PRE_STOP_SECONDS}}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
        "terminationMessagePath": TERMINATION_PATH,
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
