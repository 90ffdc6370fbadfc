"""Nodes whose GPUs a DRA driver would publish, for stories on the real scheduler."""

import contextlib
import json
from collections.abc import Iterator, Sequence
from typing import Any

from builders_slices import gpu_device, slice_manifest
from shipfitter.core.gpus import resolve_product
from shipfitter.core.resource_slices import DRIVER
from world.nodes.api import ApiError
from world.nodes.node import NodeSpec
from world.stage import OUTSIDE_BYTES, Stage

RESOURCE = "/apis/resource.k8s.io/v1"
OF_TYPE = "device.driver == '{driver}' && device.attributes['{driver}'].type == '{kind}'"


def device_class(name: str, kind: str, **spec: Any) -> dict[str, Any]:
    """A DeviceClass as NVIDIA's chart installs it."""
    expression = OF_TYPE.format(driver=DRIVER, kind=kind)
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": expression}}], **spec},
    }


@contextlib.contextmanager
def published(stage: Stage, *objects: dict[str, Any]) -> Iterator[None]:
    """DeviceClasses and ResourceSlices for one story."""
    plurals = {"DeviceClass": "deviceclasses", "ResourceSlice": "resourceslices"}
    made: list[str] = []
    try:
        for body in objects:
            collection = f"{RESOURCE}/{plurals[body['kind']]}"
            stage.api.post(collection, body)
            made.append(f"{collection}/{body['metadata']['name']}")
        yield
    finally:
        for path in made:
            with contextlib.suppress(ApiError):
                stage.api.delete(path)


def add_dra_node(
    stage: Stage,
    name: str,
    products: Sequence[str],
    *,
    engines_find: str,
    usable_bytes: int | None = None,
) -> dict[str, Any]:
    """A node that hands out no extended resource, and the slice of its GPUs, to be published.

    `engines_find` is the product that engines find there, with less memory where it is a part of
    one: they are told of one device only.
    """
    row = resolve_product(engines_find)
    assert row is not None, engines_find
    device = {
        "name": row.product,
        "total_bytes": usable_bytes or row.cuda_total_bytes,
        "free_bytes": (usable_bytes or row.cuda_total_bytes) - OUTSIDE_BYTES,
        "nominal_bytes": usable_bytes or row.nvml_total_bytes,
        "compute_capability": ".".join(map(str, row.compute_capability)),
        "count": max(1, len(products)),
    }
    environment = {"ENGINE_STUB_DEVICE": json.dumps(device)}
    stage.emulator.add_node(NodeSpec(name=name, environment=environment))
    devices = [gpu_device(f"gpu-{number}", each) for number, each in enumerate(products)]
    return slice_manifest(name, devices)


def claims_of(stage: Stage, name: str) -> list[dict[str, Any]]:
    """The ResourceClaims of a deployment's pods."""
    found = stage.api.get(
        f"{RESOURCE}/namespaces/default/resourceclaims",
        labelSelector=f"shipfitter.dev/modeldeployment={name}",
    )
    items: list[dict[str, Any]] = found["items"]
    return items


def templates_of(stage: Stage, name: str) -> list[str]:
    """The names of a deployment's claim templates."""
    found = stage.api.get(
        f"{RESOURCE}/namespaces/default/resourceclaimtemplates",
        labelSelector=f"shipfitter.dev/modeldeployment={name}",
    )
    return sorted(each["metadata"]["name"] for each in found["items"])


def devices_of(claim: dict[str, Any]) -> list[tuple[str, str]]:
    """(pool, device) of what a claim holds."""
    allocation = claim.get("status", {}).get("allocation") or {}
    results = allocation.get("devices", {}).get("results") or []
    return [(each["pool"], each["device"]) for each in results]
