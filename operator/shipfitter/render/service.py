"""One Service over all variants."""

from typing import Any

from shipfitter.api.model_deployment import ModelDeployment
from shipfitter.render.args import ENGINE_PORT
from shipfitter.render.labels import owned_metadata, serving_selector


def service(resource: ModelDeployment) -> dict[str, Any]:
    """The Service that clients use, whatever variant answers."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": owned_metadata(resource, resource.metadata.name),
        "spec": {
            "selector": serving_selector(resource),
            "ports": [
                {
                    "name": "http",
                    "port": ENGINE_PORT,
                    "targetPort": "http",
                    "protocol": "TCP",
                    "appProtocol": "http",
                }
            ],
        },
    }
