"""Where the pods may run: on the plan's pool, by labels; never by a host's name."""

from typing import Any

from shipfitter.api.model_deployment import ModelDeployment
from shipfitter.core.inventory import Pool, Taint
from shipfitter.core.plan import Sizing
from shipfitter.render.labels import serving_selector

SHARING_LABEL = "nvidia.com/gpu.sharing-strategy"
SHARED_STRATEGIES = ("mps", "time-slicing")

# Taints that only say "GPU node". Source: the GPU operator's and GKE's nvidia.com/gpu, AKS's sku.
GPU_TAINT_KEYS = ("nvidia.com/gpu", "sku", "cloud.google.com/gke-accelerator")
_USUAL = (
    {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "sku", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"},
)


def is_gpu_taint(taint: Taint) -> bool:
    """True for a taint that only keeps off pods without a GPU; others mean something more."""
    return taint.key in GPU_TAINT_KEYS


def placement(resource: ModelDeployment, sizing: Sizing) -> dict[str, Any]:
    """The pod's affinity, tolerations, selector, spread and priority; absent parts are left out."""
    wanted = resource.spec.placement
    fields: dict[str, Any] = {"tolerations": tolerations(resource, sizing.pool)}
    affinity = _affinity(sizing.pool)
    if affinity:
        fields["affinity"] = {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": affinity}]
                }
            }
        }
    if wanted.node_selector:
        fields["nodeSelector"] = dict(sorted(wanted.node_selector.items()))
    if wanted.topology_spread_constraints:
        fields["topologySpreadConstraints"] = _spread(resource)
    if wanted.priority_class_name:
        fields["priorityClassName"] = wanted.priority_class_name
    return fields


def same_node(resource: ModelDeployment) -> dict[str, Any]:
    """Affinity of all replicas to one node, for a cache claim that one node can mount."""
    term = {
        "labelSelector": {"matchLabels": serving_selector(resource)},
        "topologyKey": "kubernetes.io/hostname",
    }
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def _affinity(pool: Pool) -> list[dict[str, Any]]:
    expressions: list[dict[str, Any]] = [
        {"key": key, "operator": "In", "values": [value]}
        for key, value in sorted(pool.selector.items())
    ]
    if pool.sharing == "none" and SHARING_LABEL not in pool.selector:
        # Also matches nodes without the label: only known sharing is kept off.
        expressions.append(
            {"key": SHARING_LABEL, "operator": "NotIn", "values": list(SHARED_STRATEGIES)}
        )
    return expressions


def tolerations(resource: ModelDeployment, pool: Pool) -> list[dict[str, Any]]:
    """The usual GPU taints, the pool's own GPU taints, then what the user bears."""
    found = [dict(each) for each in _USUAL]
    for taint in sorted(pool.taints, key=lambda t: (t.key, t.value, t.effect)):
        if is_gpu_taint(taint) and not any(_bears(each, taint) for each in found):
            found.append(
                {
                    "key": taint.key,
                    "operator": "Equal",
                    "value": taint.value,
                    "effect": taint.effect,
                }
            )
    for toleration in resource.spec.placement.tolerations:
        written = toleration.model_dump(mode="json", by_alias=True, exclude_none=True)
        if written not in found:
            found.append(written)
    return found


def _bears(toleration: dict[str, Any], taint: Taint) -> bool:
    return bool(
        toleration["key"] == taint.key
        and toleration["effect"] == taint.effect
        and toleration.get("value", taint.value) == taint.value
    )


def _spread(resource: ModelDeployment) -> list[dict[str, Any]]:
    written = []
    for constraint in resource.spec.placement.topology_spread_constraints:
        fields = constraint.model_dump(
            mode="json", by_alias=True, exclude_none=True, exclude_defaults=True
        )
        fields.setdefault("labelSelector", {"matchLabels": serving_selector(resource)})
        written.append(fields)
    return written
