"""Dynamic resource allocation: a claim template that asks for GPUs by what they are.

A selector that fails on any device keeps the pod from being scheduled at all, so every fact is
asked for before it is used: GPUs with unified memory publish none.
"""

import hashlib
import json
import re
from typing import Any

from shipfitter.api.model_deployment import ModelDeployment
from shipfitter.core.gpus import resolve_product
from shipfitter.core.plan import Sizing
from shipfitter.render.labels import common_labels, owned_metadata
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
        "spec": {
            "metadata": {"labels": common_labels(resource)},
            "spec": _claim(sizing, device_class),
        },
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
    """The planned product, its memory and compute capability, and the planned MIG profile."""
    pool = sizing.pool
    device = f"device.attributes['{DRIVER}']"
    tests = [f"has({device}.productName)", _is_product(f"{device}.productName", pool.product)]
    if not pool.unified:
        total_bytes = (pool.nominal_bytes or pool.total_bytes) * 97 // 100
        memory = f"device.capacity['{DRIVER}'].memory"
        tests += [f"has({memory})", f"{memory}.compareTo(quantity('{total_bytes}')) >= 0"]
    if pool.compute_capability is not None:
        major, minor = pool.compute_capability
        capability = f"{device}.cudaComputeCapability"
        least = f"semver('{major}.{minor}.0')"
        tests += [f"has({capability})", f"{capability}.compareTo({least}) >= 0"]
    if pool.mig_profile:
        tests += [f"has({device}.profile)", f"{device}.profile == '{pool.mig_profile}'"]
    return " && ".join(tests)


def _is_product(name: str, product: str) -> str:
    """The name the driver gives the product: words that a label joins by dashes."""
    row = resolve_product(product)
    if row is not None and row.product == product:
        return f"{name} == '{row.aliases[0]}'"
    pattern = re.escape(product).replace("\\-", "[- ]")
    return f"{name}.matches(r'^{pattern}$')"
