"""The least an operator can do, as the yardstick: one kind, one fixed Deployment, applied."""

from typing import Any

import kopf
from kubernetes import client, config

GROUP = "bare.example.com"


@kopf.on.startup()
def connect(**_: Any) -> None:
    config.load_kube_config()


@kopf.on.create(GROUP, "v1alpha1", "modeldeployments")
def deploy(name: str, namespace: str, **_: Any) -> None:
    labels = {"bare.example.com/name": name}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": f"bare-{name}", "labels": labels},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "engine", "image": "vllm/vllm-openai:v0.33.0"}]},
            },
        },
    }
    kopf.adopt(deployment)
    client.AppsV1Api().patch_namespaced_deployment(
        f"bare-{name}",
        namespace,
        deployment,
        field_manager="bare",
        force=True,
        _content_type="application/apply-patch+yaml",
    )
