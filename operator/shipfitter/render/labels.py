"""Labels, annotations and names that tie a deployment's objects together."""

from typing import Any

from shipfitter.api.base import API_VERSION
from shipfitter.api.model_deployment import ModelDeployment

MODEL_DEPLOYMENT_LABEL = "shipfitter.dev/modeldeployment"
VARIANT_LABEL = "shipfitter.dev/variant"
SERVES_LABEL = "shipfitter.dev/serves"
INPUTS_ANNOTATION = "shipfitter.dev/inputs-hash"
PLAN_ANNOTATION = "shipfitter.dev/plan"
TEMPLATE_ANNOTATION = "shipfitter.dev/template"  # on pods: a digest of what they were made from
CLAIMS_ANNOTATION = "shipfitter.dev/claims"  # what a pod's claims take, as our ledger counts it


# A queue of Kueue's is named by a label on the workload; its admission copies it to the pods.
QUEUE_LABELS = ("kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/priority-class")


def queue_labels(resource: ModelDeployment) -> dict[str, str]:
    """Labels of the ModelDeployment that tell another controller about its workload."""
    found = resource.metadata.labels
    return {name: found[name] for name in QUEUE_LABELS if name in found}


def common_labels(resource: ModelDeployment) -> dict[str, str]:
    """What every object of the deployment carries."""
    return {
        "app.kubernetes.io/name": "vllm",
        "app.kubernetes.io/instance": resource.metadata.name,
        "app.kubernetes.io/component": "engine",
        "app.kubernetes.io/managed-by": "shipfitter",
        MODEL_DEPLOYMENT_LABEL: resource.metadata.name,
    }


def variant_selector(resource: ModelDeployment, variant: str) -> dict[str, str]:
    """The pods of one variant; a selector cannot change, so it is as small as can be."""
    return {MODEL_DEPLOYMENT_LABEL: resource.metadata.name, VARIANT_LABEL: variant}


def serving_selector(resource: ModelDeployment) -> dict[str, str]:
    """The pods that answer requests: no workers of a group, no Jobs."""
    return {MODEL_DEPLOYMENT_LABEL: resource.metadata.name, SERVES_LABEL: "true"}


def owned_metadata(resource: ModelDeployment, name: str) -> dict[str, Any]:
    """Metadata of an object that goes when the deployment goes.

    Without blockOwnerDeletion: deleting a ModelDeployment must work while the operator is down.
    """
    return {
        "name": name,
        "namespace": resource.metadata.namespace,
        "labels": common_labels(resource),
        "ownerReferences": [
            {
                "apiVersion": API_VERSION,
                "kind": "ModelDeployment",
                "name": resource.metadata.name,
                "uid": resource.metadata.uid,
                "controller": True,
            }
        ],
    }
