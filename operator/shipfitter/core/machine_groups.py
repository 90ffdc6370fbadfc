"""Machine groups that cluster-autoscaler may grow from nothing: which GPU nodes they would make.

What clouds know of their groups (tags of a scaling group) is nowhere in the cluster; Cluster API's
machine groups, and those of OpenShift, say it in annotations.
Source: kubernetes/autoscaler, cluster-autoscaler/cloudprovider/clusterapi README (scale from zero).
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from shipfitter.core.capacity import Taint, read_taints
from shipfitter.core.expected import MOST_GPUS_PER_NODE, ExpectedNodes
from shipfitter.core.quantities import whole
from shipfitter.core.spellings import Resolved, resolve_spelling

CAPACITY = "capacity.cluster-autoscaler.kubernetes.io"  # annotations: gpu-count, labels, taints
MOST_NODES = (
    "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size",
    "machine.openshift.io/cluster-api-autoscaler-node-group-max-size",
)
GPU_COUNTS = (f"{CAPACITY}/gpu-count", "machine.openshift.io/GPU")

# Labels that name a card or a machine, the most exact first.
NAMING_LABELS = (
    "nvidia.com/gpu.product",
    "node.kubernetes.io/instance-type",
    "cloud.google.com/gke-accelerator",
    "karpenter.k8s.aws/instance-gpu-name",
    "k8s.amazonaws.com/accelerator",
    "gpu.nvidia.com/model",
    "cluster-api/accelerator",
    "accelerator",
)
# Where an OpenShift provider keeps the instance type: AWS, Azure, Google.
INSTANCE_FIELDS = ("instanceType", "vmSize", "machineType")


def machine_group_nodes(group: Mapping[str, Any]) -> tuple[ExpectedNodes, ...]:
    """The kind of GPU node a group would make; none where none, or where no autoscaler grows it."""
    metadata = group.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    if metadata.get("deletionTimestamp") or not any(
        whole(annotations.get(key)) for key in MOST_NODES
    ):
        return ()
    labels = _labels(group, annotations)
    found = _gpu(group, labels)
    told = next((annotations[key] for key in GPU_COUNTS if key in annotations), None)
    gpus = whole(told) if told is not None else (found.gpus_per_node or 0) if found else 0
    if not found or not labels or not 0 < gpus <= MOST_GPUS_PER_NODE:
        return ()
    origin = f"{group.get('kind', 'group')} {metadata.get('name', '')}"
    taints = tuple(_taints(group, annotations))
    return (
        ExpectedNodes(found=found, gpus_per_node=gpus, labels=labels, taints=taints, origin=origin),
    )


def _labels(group: Mapping[str, Any], annotations: Mapping[str, str]) -> dict[str, str]:
    """What the autoscaler knows of a node to come: the group's labels for nodes, and declared ones.

    Without any, no pod could ask for such a node: the group then stands for none.
    """
    template = ((group.get("spec") or {}).get("template")) or {}
    spec = template.get("spec") or {}
    own = {
        **(((template.get("metadata") or {}).get("labels")) or {}),
        **(((spec.get("metadata") or {}).get("labels")) or {}),  # OpenShift
    }
    # Those of the machinery itself are not copied to nodes.
    kept = {key: str(value) for key, value in own.items() if "cluster.x-k8s.io/" not in key}
    kept = {key: value for key, value in kept.items() if "machine.openshift.io/" not in key}
    declared = re.findall(r"([^=,\s]+)=([^,\s]*)", annotations.get(f"{CAPACITY}/labels", ""))
    return kept | dict(declared)


def _gpu(group: Mapping[str, Any], labels: Mapping[str, str]) -> Resolved | None:
    spec = (((group.get("spec") or {}).get("template")) or {}).get("spec") or {}
    machine = ((spec.get("providerSpec") or {}).get("value")) or {}
    spellings = [labels[key] for key in NAMING_LABELS if key in labels]
    spellings += [str(machine[field]) for field in INSTANCE_FIELDS if field in machine]
    return next((found for each in spellings if (found := resolve_spelling(each))), None)


def _taints(group: Mapping[str, Any], annotations: Mapping[str, str]) -> Iterator[Taint]:
    """Declared as key=value:effect, and those of an OpenShift template."""
    for text in filter(None, annotations.get(f"{CAPACITY}/taints", "").split(",")):
        key, _, rest = text.strip().partition("=")
        value, _, effect = rest.partition(":")
        if not rest:
            key, _, effect = key.partition(":")
        yield Taint(key=key, value=value, effect=effect or "NoSchedule")
    template = ((group.get("spec") or {}).get("template")) or {}
    yield from read_taints((template.get("spec") or {}).get("taints"))
