"""A variant as a Deployment: the whole of it when the decision changed, its scale otherwise."""

import json
from collections.abc import Mapping
from typing import Any

from shipfitter.api.engine_version import engine_version
from shipfitter.api.model_deployment import ModelDeployment
from shipfitter.core.plan import VariantPlan
from shipfitter.render.labels import (
    INPUTS_ANNOTATION,
    PLAN_ANNOTATION,
    VARIANT_LABEL,
    owned_metadata,
    queue_labels,
    variant_selector,
)
from shipfitter.render.overlay import overlaid
from shipfitter.render.placement import same_node
from shipfitter.render.pod import pod_template
from shipfitter.render.startup import progress_deadline_seconds
from shipfitter.render.variant import variant_name

REVISION_HISTORY_LIMIT = 3


def deployment(
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
    """The variant's Deployment for the plan that `record` holds.

    `replicas` and the strategy belong to another manager (`scale_manifest`); give them only to
    create the object, so that it does not start with Kubernetes' defaults.
    """
    sizing = variant.sizing
    name = variant_name(resource.metadata.name, sizing, allocation=resource.spec.gpus.allocation)
    metadata = owned_metadata(resource, name)
    metadata["labels"] |= {VARIANT_LABEL: name, **queue_labels(resource)}
    metadata["annotations"] = {
        INPUTS_ANNOTATION: str(record.get("inputsHash", "")),
        PLAN_ANNOTATION: annotated_plan(record, resource, image=image),
    }
    spec: dict[str, Any] = {
        "revisionHistoryLimit": REVISION_HISTORY_LIMIT,
        "progressDeadlineSeconds": progress_deadline_seconds(sizing.model.facts.checkpoint_bytes),
        "selector": {"matchLabels": variant_selector(resource, name)},
        "template": pod_template(resource, sizing, name, image=image, hub_endpoint=hub_endpoint),
    }
    if replicas is not None:
        spec["replicas"] = replicas
    if max_surge is not None and max_unavailable is not None:
        spec["strategy"] = _strategy(max_surge, max_unavailable)
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def on_one_node(manifest: Mapping[str, Any], resource: ModelDeployment) -> dict[str, Any]:
    """The Deployment with all replicas on one node: its cache claim can be mounted by no more."""
    affinity = {"affinity": same_node(resource)}
    return overlaid(manifest, {"spec": {"template": {"spec": affinity}}})


def annotated_plan(record: Mapping[str, Any], resource: ModelDeployment, *, image: str) -> str:
    """The plan and its pins on one line: an object restored without status is rebuilt from it."""
    version = resource.spec.engine.version or engine_version(image) or ""
    engine = {"image": image, "version": version}
    return json.dumps({**record, "engine": engine}, sort_keys=True, separators=(",", ":"))


def scale_manifest(
    resource: ModelDeployment,
    name: str,
    *,
    replicas: int,
    max_surge: int,
    max_unavailable: int,
) -> dict[str, Any]:
    """Only the number of replicas and how they are replaced: all that changes between decisions."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": resource.metadata.namespace},
        "spec": {"replicas": replicas, "strategy": _strategy(max_surge, max_unavailable)},
    }


def _strategy(max_surge: int, max_unavailable: int) -> dict[str, Any]:
    if max_surge == max_unavailable == 0:
        raise ValueError("with neither a surge nor an absence allowed no pod is ever replaced")
    return {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": max_surge, "maxUnavailable": max_unavailable},
    }
