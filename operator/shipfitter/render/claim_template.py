"""Dynamic resource allocation: a claim template that asks for GPUs by what they can do."""

import hashlib
import json
from typing import Any

from shipfitter.api.model_deployment import ModelDeployment
from shipfitter.core.plan import Sizing
from shipfitter.render.labels import owned_metadata
from shipfitter.render.variant import gpus_per_pod

CLAIM_NAME = "gpus"
DEVICE_CLASS = "gpu.nvidia.com"
MIG_DEVICE_CLASS = "mig.nvidia.com"
DRIVER = "gpu.nvidia.com"


def claim_template(
    resource: ModelDeployment, sizing: Sizing, *, device_class: str = ""
) -> dict[str, Any]:
    """The template of the plan's claims; its spec cannot change, so its name holds its hash."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": owned_metadata(
            resource, claim_template_name(resource, sizing, device_class=device_class)
        ),
        "spec": {"spec": _claim(sizing, device_class)},
    }


def claim_template_name(
    resource: ModelDeployment, sizing: Sizing, *, device_class: str = ""
) -> str:
    """The name, different for each claim that is asked for."""
    text = json.dumps(_claim(sizing, device_class), sort_keys=True)
    return f"{resource.metadata.name}-gpus-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _claim(sizing: Sizing, device_class: str) -> dict[str, Any]:
    pool = sizing.pool
    default = MIG_DEVICE_CLASS if pool.mig_profile else DEVICE_CLASS
    return {
        "devices": {
            "requests": [
                {
                    "name": CLAIM_NAME,
                    "exactly": {
                        "deviceClassName": device_class or default,
                        "allocationMode": "ExactCount",
                        "count": gpus_per_pod(sizing),
                        "selectors": [{"cel": {"expression": _expression(sizing)}}],
                    },
                }
            ]
        }
    }


def _expression(sizing: Sizing) -> str:
    """At least the planned memory and compute capability, and the planned MIG profile."""
    pool = sizing.pool
    device = f"device.attributes['{DRIVER}']"
    total_bytes = pool.nominal_bytes or pool.total_bytes
    tests = [
        f"device.capacity['{DRIVER}'].memory.compareTo(quantity('{total_bytes * 97 // 100}')) >= 0"
    ]
    if pool.compute_capability is not None:
        major, minor = pool.compute_capability
        least = f"semver('{major}.{minor}.0')"
        tests.append(f"{device}.cudaComputeCapability.compareTo({least}) >= 0")
    if pool.mig_profile:
        tests.append(f"{device}.profile == '{pool.mig_profile}'")
    return " && ".join(tests)
