"""Volumes: shared memory, a writable cache, scratch space, the model's claim, the logging file."""

from collections.abc import Iterator
from typing import Any

from shipfitter.api.model_deployment import ModelDeployment
from shipfitter.api.model_source import claim_and_path
from shipfitter.core.plan import Sizing
from shipfitter.render.args import MODEL_MOUNT
from shipfitter.render.config_map import LOGGING_FOLDER, logging_config_map_name
from shipfitter.render.resources import mebibytes, shm_bytes

CACHE_MOUNT = "/cache"
SCRATCH_MOUNT = "/tmp"


def downloads(resource: ModelDeployment, sizing: Sizing) -> bool:
    """True where each pod fetches the weights onto its node."""
    return claim_and_path(sizing.model.uri) is None and not resource.spec.storage.cache_claim


def volumes(resource: ModelDeployment, sizing: Sizing) -> list[dict[str, Any]]:
    """The pod's volumes, in a fixed order."""
    return [volume for volume, _ in _volumes(resource, sizing)]


def volume_mounts(resource: ModelDeployment, sizing: Sizing) -> list[dict[str, Any]]:
    """Where the engine sees them."""
    return [{"name": volume["name"], **mount} for volume, mount in _volumes(resource, sizing)]


def _volumes(
    resource: ModelDeployment, sizing: Sizing
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    yield (
        {
            "name": "shm",
            "emptyDir": {"medium": "Memory", "sizeLimit": mebibytes(shm_bytes(sizing))},
        },
        {"mountPath": "/dev/shm"},
    )
    claim = resource.spec.storage.cache_claim
    yield (
        {
            "name": "cache",
            **({"persistentVolumeClaim": {"claimName": claim}} if claim else {"emptyDir": {}}),
        },
        {"mountPath": CACHE_MOUNT},
    )
    # Apart from the cache: the engine's processes meet at sockets here, which a network file
    # system cannot hold.
    yield {"name": "scratch", "emptyDir": {}}, {"mountPath": SCRATCH_MOUNT}
    yield (
        {"name": "logging", "configMap": {"name": logging_config_map_name(resource)}},
        {"mountPath": LOGGING_FOLDER, "readOnly": True},
    )
    place = claim_and_path(sizing.model.uri)
    if place is not None:
        yield (
            {"name": "model", "persistentVolumeClaim": {"claimName": place[0], "readOnly": True}},
            {"mountPath": MODEL_MOUNT, "readOnly": True},
        )
