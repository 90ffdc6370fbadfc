"""The Job that puts a plan under load: the engine's own load test, sent to the Service.

It runs the engine's image without a GPU, in the deployment's namespace, under restricted pod
security, without rights in the API. What it finds are its last words.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from shipfitter.api.model_deployment import ModelDeployment
from shipfitter.api.model_source import claim_and_path
from shipfitter.core.engines import EngineVersion
from shipfitter.render.args import MODEL_MOUNT
from shipfitter.render.labels import MODEL_DEPLOYMENT_LABEL, owned_metadata, serving_selector
from shipfitter.render.load_command import (
    LOAD_SECONDS,
    MOST_ENGINES_ASKED,
    load_command,
    load_variables,
)
from shipfitter.render.load_size import Load
from shipfitter.render.restricted_pod import (
    MESSAGE_FILE,
    gpu_node_tolerations,
    restricted_pod,
)

COMPONENT_LABEL = "app.kubernetes.io/component"
COMPONENT = "verification"
VERIFIES_LABEL = "shipfitter.dev/verifies"
PLAN_HASH_ANNOTATION = "shipfitter.dev/plan-hash"
LOAD_ANNOTATION = "shipfitter.dev/load"
RESTARTS_ANNOTATION = "shipfitter.dev/restarts"  # of the engines' pods when the load began
CONTAINER = "load"

# From here on the client runs on a machine without a GPU. Source: vLLM 0.11.1
# vllm/entrypoints/cli/main.py; 0.11.0 stops with "Failed to infer device type".
BENCH_FROM = EngineVersion(0, 11, 1)

DEADLINE_SECONDS = LOAD_SECONDS + 900  # with an image of 10 GB to be pulled first
KEPT_SECONDS = 3600
_USER = 65532
_NAME_HASH_LENGTH = 8
# The client alone takes 1 GB (vLLM 0.32, measured); quotas want limits to be named.
_RESOURCES = {
    "requests": {"cpu": "1", "memory": "2Gi"},
    "limits": {"cpu": "4", "memory": "8Gi"},
}


def verify_job_name(resource: ModelDeployment, digest: str) -> str:
    """The name of a plan's load test."""
    return f"{resource.metadata.name}-verify-{digest[:_NAME_HASH_LENGTH]}"


def verify_job(
    resource: ModelDeployment,
    load: Load,
    digest: str,
    *,
    image: str,
    model_uri: str,
    addresses: Sequence[str],
    restarts: Mapping[str, int],
    cluster_domain: str = "cluster.local",
    hub_endpoint: str = "",
) -> dict[str, Any]:
    """The Job for one plan; `addresses` are the engines', `restarts` those of their pods so far."""
    metadata = owned_metadata(resource, verify_job_name(resource, digest))
    metadata["labels"] = {**_labels(resource), MODEL_DEPLOYMENT_LABEL: resource.metadata.name}
    metadata["annotations"] = {
        PLAN_HASH_ANNOTATION: digest,
        LOAD_ANNOTATION: json.dumps(load.record()),
        RESTARTS_ANNOTATION: json.dumps(dict(sorted(restarts.items()))),
    }
    host = f"{resource.metadata.name}.{resource.metadata.namespace}.svc.{cluster_domain}"
    command = load_command(
        resource,
        load,
        digest,
        host=host,
        addresses=addresses,
        model_uri=model_uri,
        message_file=MESSAGE_FILE,
    )
    direct = [host, *addresses[:MOST_ENGINES_ASKED]]
    variables = load_variables(resource, model_uri, hub_endpoint=hub_endpoint, direct=direct)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {
            "backoffLimit": 0,  # once for each plan
            "activeDeadlineSeconds": DEADLINE_SECONDS,
            "ttlSecondsAfterFinished": KEPT_SECONDS,
            "template": {
                "metadata": {"labels": _labels(resource)},
                "spec": _pod(resource, command, variables, image=image, model_uri=model_uri),
            },
        },
    }


def _labels(resource: ModelDeployment) -> dict[str, str]:
    """Never the label of the deployment's own pods: disruption budgets count those."""
    return {
        "app.kubernetes.io/name": "shipfitter",
        COMPONENT_LABEL: COMPONENT,
        "app.kubernetes.io/managed-by": "shipfitter",
        VERIFIES_LABEL: resource.metadata.name,
    }


def _pod(
    resource: ModelDeployment,
    command: list[str],
    variables: list[dict[str, Any]],
    *,
    image: str,
    model_uri: str,
) -> dict[str, Any]:
    volumes: list[dict[str, Any]] = [{"name": "tmp", "emptyDir": {"sizeLimit": "2Gi"}}]
    mounts: list[dict[str, Any]] = [{"name": "tmp", "mountPath": "/tmp"}]
    place = claim_and_path(model_uri)
    if place is not None:
        claim = {"claimName": place[0], "readOnly": True}
        volumes.append({"name": "model", "persistentVolumeClaim": claim})
        mounts.append({"name": "model", "mountPath": MODEL_MOUNT, "readOnly": True})
    near = {
        "weight": 100,
        "podAffinityTerm": {
            "labelSelector": {"matchLabels": serving_selector(resource)},
            "topologyKey": "kubernetes.io/hostname",
        },
    }
    container = {
        "name": CONTAINER,
        "image": image,
        "command": command,
        "env": variables,
        "resources": _RESOURCES,
        "volumeMounts": mounts,
    }
    return {
        **restricted_pod(resource, container, volumes, context=_identity(resource)),
        # Beside an engine the image is there already, and a volume of one node can be mounted.
        "affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [near]}},
        "tolerations": gpu_node_tolerations(resource),
    }


def _identity(resource: ModelDeployment) -> dict[str, Any]:
    """Not root, which engine images are by default; a user the template names goes before ours."""
    context: dict[str, Any] = {"runAsUser": _USER}
    own = ((resource.spec.template.get("spec") or {}).get("securityContext")) or {}
    for name in ("runAsUser", "runAsGroup", "fsGroup", "supplementalGroups"):
        if own.get(name):
            context[name] = own[name]
    return context
