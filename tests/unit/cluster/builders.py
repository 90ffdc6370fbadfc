"""Bodies and manifests of one small deployment."""

from typing import Any

from shipfitter.decide.world import Apply

Body = dict[str, Any]
LABELS = {
    "shipfitter.dev/modeldeployment": "llama",
    "shipfitter.dev/variant": "llama-v",
}


def model_deployment(name: str = "llama", **spec: Any) -> Body:
    return {
        "apiVersion": "shipfitter.dev/v1alpha1",
        "kind": "ModelDeployment",
        "metadata": {"name": name, "namespace": "team", "uid": f"uid-{name}", "generation": 1},
        "spec": {"model": {"uri": "hf://org/model"}, **spec},
    }


def owned(name: str, owner: str = "llama") -> Body:
    reference = {
        "apiVersion": "shipfitter.dev/v1alpha1",
        "kind": "ModelDeployment",
        "name": owner,
        "uid": f"uid-{owner}",
    }
    labels = {**LABELS, "shipfitter.dev/modeldeployment": owner}
    return {"name": name, "labels": labels, "ownerReferences": [reference]}


def config_map(data: str = "1") -> Apply:
    return Apply(
        manifest={
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": owned("llama-logging"),
            "data": {"a": data},
        }
    )


def service(port: int = 8000) -> Apply:
    return Apply(
        manifest={
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": owned("llama"),
            "spec": {"ports": [{"port": port}]},
        }
    )


def deployment(image: str = "vllm:1", gpus: int = 1, owner: str = "llama") -> Apply:
    container = {
        "name": "engine",
        "image": image,
        "resources": {"limits": {"nvidia.com/gpu": str(gpus)}},
    }
    return Apply(
        manifest={
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": owned(f"{owner}-v", owner),
            "spec": {
                "selector": {"matchLabels": LABELS},
                "template": {"metadata": {"labels": LABELS}, "spec": {"containers": [container]}},
            },
        }
    )


def scale(replicas: int, owner: str = "llama") -> Apply:
    return Apply(
        manifest={
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": f"{owner}-v"},
            "spec": {"replicas": replicas},
        },
        manager="shipfitter-scale",
    )


def gpu_node(name: str = "n1", gpus: int = 2) -> Body:
    """A Node with the labels of gpu-feature-discovery."""
    amounts = {"nvidia.com/gpu": str(gpus), "cpu": "64", "memory": "512Gi"}
    return {
        "metadata": {
            "name": name,
            "labels": {
                "nvidia.com/gpu.product": "NVIDIA-L40S",
                "nvidia.com/gpu.count": str(gpus),
                "nvidia.com/gpu.memory": "46068",
            },
        },
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def conditions(reason: str, status: str = "True") -> list[Body]:
    return [{"type": "Planned", "status": status, "reason": reason, "message": f"it {reason}"}]
