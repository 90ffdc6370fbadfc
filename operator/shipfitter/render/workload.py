"""A variant as the kind of workload it needs: pods of their own, or groups of pods over nodes."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from shipfitter.api.model_deployment import ModelDeployment
from shipfitter.core.plan import VariantPlan
from shipfitter.render.deployment import deployment, scale_manifest
from shipfitter.render.labels import TEMPLATE_ANNOTATION
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
        return _marked(
            deployment(
                resource,
                variant,
                record,
                image=image,
                replicas=replicas,
                max_surge=max_surge,
                max_unavailable=max_unavailable,
                hub_endpoint=hub_endpoint,
            )
        )
    return _marked(
        leader_worker_set(
            resource, variant, record, image=image, replicas=replicas, hub_endpoint=hub_endpoint
        )
    )


def template_of(body: Mapping[str, Any]) -> str:
    """The mark of a live workload's pods; empty where it was written without."""
    for template in _templates(body):
        annotations = (template.get("metadata") or {}).get("annotations") or {}
        return str(annotations.get(TEMPLATE_ANNOTATION, ""))
    return ""


def _marked(manifest: dict[str, Any]) -> dict[str, Any]:
    """Pods say from which templates they were made: a mark that changes only when those do."""
    templates = _templates(manifest)
    text = json.dumps(templates, sort_keys=True, separators=(",", ":"))
    mark = hashlib.sha256(text.encode()).hexdigest()[:16]
    for template in templates:
        metadata = template.setdefault("metadata", {})
        metadata["annotations"] = {
            **(metadata.get("annotations") or {}),
            TEMPLATE_ANNOTATION: mark,
        }
    return manifest


def _templates(body: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    """The pod templates of a Deployment, or of a group's leader and workers."""
    spec = body.get("spec") or {}
    group = spec.get("leaderWorkerTemplate") or {}
    found = (spec.get("template"), group.get("leaderTemplate"), group.get("workerTemplate"))
    return tuple(template for template in found if template)


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
