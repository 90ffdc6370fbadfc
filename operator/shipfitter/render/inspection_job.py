"""The Job that reads a model where the operator must not: with a Secret's token, or on a claim.

It runs in the deployment's own namespace, under restricted pod security, without rights in the API.
"""

import hashlib
import json
from typing import Any

from shipfitter.api.model_deployment import ModelDeployment
from shipfitter.api.model_source import claim_and_path
from shipfitter.render.args import MODEL_MOUNT, model_argument
from shipfitter.render.labels import MODEL_DEPLOYMENT_LABEL, owned_metadata
from shipfitter.render.restricted_pod import (
    MESSAGE_FILE,
    gpu_node_tolerations,
    restricted_pod,
)

COMPONENT_LABEL = "app.kubernetes.io/component"
COMPONENT = "inspection"
INSPECTS_LABEL = "shipfitter.dev/inspects"
CONTAINER = "inspect"
READ_SECONDS = 240  # a checkpoint of 163 files takes seconds from a hub, minutes from a slow share
DEADLINE_SECONDS = 600  # with a node to be added and an image to be pulled
# A Job that failed stays for a look at its log, and tells a restarted operator what it found.
KEPT_SECONDS = 3600
_HASH_LENGTH = 8
# Variables of the engine that say how to reach a hub; the Job reaches the same one.
_HUB_VARIABLES = ("HF_ENDPOINT", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
# DeepSeek-V3's 91,991 tensors take 123 MiB (measured); quotas want limits to be named.
_RESOURCES = {
    "requests": {"cpu": "50m", "memory": "128Mi"},
    "limits": {"cpu": "1", "memory": "512Mi"},
}


def inspection_job(
    resource: ModelDeployment,
    uri: str,
    revision: str = "",
    *,
    image: str,
    hub_endpoint: str = "",
) -> dict[str, Any]:
    """The Job for one model; another model, Secret or image makes another name."""
    spec = {
        "backoffLimit": 0,  # its errors do not mend themselves at once; we ask again later
        "activeDeadlineSeconds": DEADLINE_SECONDS,
        "ttlSecondsAfterFinished": KEPT_SECONDS,
        "template": {
            "metadata": {"labels": _labels(resource)},
            "spec": _pod(resource, uri, revision, image=image, hub_endpoint=hub_endpoint),
        },
    }
    text = json.dumps(spec, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(text.encode()).hexdigest()[:_HASH_LENGTH]
    metadata = owned_metadata(resource, f"{resource.metadata.name}-inspect-{digest}")
    metadata["labels"] = {
        **_labels(resource),
        MODEL_DEPLOYMENT_LABEL: resource.metadata.name,
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def _labels(resource: ModelDeployment) -> dict[str, str]:
    """Never the label of the deployment's own pods: disruption budgets count those."""
    return {
        "app.kubernetes.io/name": "shipfitter",
        COMPONENT_LABEL: COMPONENT,
        "app.kubernetes.io/managed-by": "shipfitter",
        INSPECTS_LABEL: resource.metadata.name,
    }


def _pod(
    resource: ModelDeployment, uri: str, revision: str, *, image: str, hub_endpoint: str
) -> dict[str, Any]:
    spec = resource.spec
    place = claim_and_path(uri)
    args = [
        "inspect",
        uri,
        f"--timeout-seconds={READ_SECONDS}",
        f"--message-file={MESSAGE_FILE}",
    ]
    volumes: list[dict[str, Any]] = [{"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}}]
    mounts: list[dict[str, Any]] = [{"name": "tmp", "mountPath": "/tmp"}]
    variables: list[dict[str, Any]] = [
        {"name": "HOME", "value": "/tmp"},
        {"name": "HF_HOME", "value": "/tmp/huggingface"},
    ]
    if place is not None:
        args.append(f"--folder={model_argument(uri)}")
        claim = {"claimName": place[0], "readOnly": True}
        volumes.append({"name": "model", "persistentVolumeClaim": claim})
        mounts.append({"name": "model", "mountPath": MODEL_MOUNT, "readOnly": True})
    else:
        args += [f"--revision={revision}"] if revision else []
        variables += _hub_variables(resource, hub_endpoint)
        token = spec.model.token_secret_ref
        if token is not None:
            args.append(f"--secret={token.name}/{token.key}")
            # Optional: without it the pod would wait unstarted, and could not say what is missing.
            reference = {"name": token.name, "key": token.key, "optional": True}
            variables.append({"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": reference}})
    container = {
        "name": CONTAINER,
        "image": image,
        "args": args,
        "env": variables,
        "resources": _RESOURCES,
        "volumeMounts": mounts,
    }
    # No user id: the image has one, and OpenShift gives its own.
    fields = restricted_pod(resource, container, volumes, context={})
    if place is not None:
        # A volume may live on one GPU node alone. For a hub any node will do, and a GPU node must
        # not be added for a Job.
        fields["tolerations"] = gpu_node_tolerations(resource)
    return fields


def _hub_variables(resource: ModelDeployment, hub_endpoint: str) -> list[dict[str, Any]]:
    found = {"HF_ENDPOINT": {"name": "HF_ENDPOINT", "value": hub_endpoint}} if hub_endpoint else {}
    for variable in resource.spec.engine.env:
        if variable.name.upper() in _HUB_VARIABLES:
            found[variable.name] = variable.model_dump(
                mode="json", by_alias=True, exclude_none=True
            )
    return list(found.values())
