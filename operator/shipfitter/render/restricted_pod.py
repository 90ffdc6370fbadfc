"""The pod of a Job of ours: restricted, without rights in the API, its last words kept."""

from collections.abc import Mapping
from typing import Any

from shipfitter.api.model_deployment import ModelDeployment
from shipfitter.render.placement import GPU_TAINT_KEYS

MESSAGE_FILE = "/dev/termination-log"


def restricted_pod(
    resource: ModelDeployment,
    container: Mapping[str, Any],
    volumes: list[dict[str, Any]],
    *,
    context: Mapping[str, Any],
) -> dict[str, Any]:
    """A pod with this one container; `context` is what its security context says besides."""
    spec = resource.spec
    fields: dict[str, Any] = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 5,
        "securityContext": {
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
            **context,
        },
        "containers": [
            {
                "imagePullPolicy": "IfNotPresent",
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "readOnlyRootFilesystem": True,
                    "capabilities": {"drop": ["ALL"]},
                },
                "terminationMessagePath": MESSAGE_FILE,
                "terminationMessagePolicy": "FallbackToLogsOnError",
                **container,
            }
        ],
        "volumes": volumes,
    }
    if spec.service_account_name:
        fields["serviceAccountName"] = spec.service_account_name
    if spec.image_pull_secrets:
        fields["imagePullSecrets"] = [{"name": each.name} for each in spec.image_pull_secrets]
    return fields


def gpu_node_tolerations(resource: ModelDeployment) -> list[dict[str, Any]]:
    """Taints of GPU nodes, then what the user bears."""
    return [
        *({"key": key, "operator": "Exists"} for key in GPU_TAINT_KEYS),
        *(
            toleration.model_dump(mode="json", by_alias=True, exclude_none=True)
            for toleration in resource.spec.placement.tolerations
        ),
    ]
