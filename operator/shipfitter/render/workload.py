"""A variant as the kind of workload it needs: pods of their own, or groups of pods over nodes."""

from collections.abc import Mapping
from typing import Any

from shipfitter.api.model_deployment import ModelDeployment
from shipfitter.core.plan import VariantPlan
from shipfitter.render.deployment import deployment, scale_manifest
from shipfitter.render.leader_worker_set import group_scale_manifest, leader_worker_set
from shipfitter.render.variant import workload_kind


def workload(
    resource: ModelDeployment,
    variant: VariantPlan,
    record: Mapping[str, Any],
    *,
    image: str,
    replicas: int | None = None,
    max_surge: int | None = None,
    max_unavailable: int | None = None,
    hub_endpoint: str = "",
) -> dict[str, Any]:
    """The variant's whole manifest; `replicas` and the strategy only to create it."""
    if workload_kind(variant.sizing) == "Deployment":
        return deployment(
            resource,
            variant,
            record,
            image=image,
            replicas=replicas,
            max_surge=max_surge,
            max_unavailable=max_unavailable,
            hub_endpoint=hub_endpoint,
        )
    return leader_worker_set(
        resource, variant, record, image=image, replicas=replicas, hub_endpoint=hub_endpoint
    )


def workload_scale(
    resource: ModelDeployment,
    name: str,
    *,
    kind: str,
    replicas: int,
    max_surge: int,
    max_unavailable: int,
) -> dict[str, Any]:
    """Only the number of replicas, or groups, and how they are replaced."""
    scaled = scale_manifest if kind == "Deployment" else group_scale_manifest
    return scaled(
        resource, name, replicas=replicas, max_surge=max_surge, max_unavailable=max_unavailable
    )
