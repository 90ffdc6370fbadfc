"""Nodes for a command: imagined from a GPU's name, read from a file, or asked of a cluster."""

from pathlib import Path
from typing import Any

import yaml

from shipfitter.core.expected import ExpectedNodes
from shipfitter.core.inventory import CapacitySource, Device, NodeCapacity
from shipfitter.core.karpenter import nodepool_nodes
from shipfitter.core.machine_groups import machine_group_nodes
from shipfitter.core.node_capacity import node_capacities
from shipfitter.core.quota import GpuQuota
from shipfitter.core.resource_slices import ResourceSlice, current, parse_slice
from shipfitter.core.spellings import Resolved, resolve_spelling, unknown_spelling
from shipfitter.errors import InvalidSpecError, UserError
from shipfitter.units import GIB, MIB

MACHINE_GROUPS = ("MachineDeployment", "MachineSet")
IMAGINED_HOST_MEMORY_BYTES = 512 * GIB


class NoClusterError(UserError):
    """No cluster is known, or it does not answer."""

    reason = "ClusterUnreachable"


def cluster_nodes(context: str | None) -> tuple[NodeCapacity, ...]:
    """Every node of the kubeconfig's cluster.

    Raises NoClusterError, which names the other ways to tell of nodes.
    """
    from shipfitter.cluster.failures import ApiError, ClusterUnreachableError
    from shipfitter.cluster.survey import survey_nodes

    try:
        return survey_nodes(context=context)
    except ClusterUnreachableError as error:
        raise NoClusterError(f"{error}; or give --nodes FILE") from error
    except ApiError as error:
        raise NoClusterError(
            f"the cluster's nodes cannot be read: {error}; see --context, or give --nodes FILE"
        ) from error


def cluster_expected(context: str | None) -> tuple[ExpectedNodes, ...]:
    """The kinds of GPU nodes that the kubeconfig's cluster may get.

    Raises NoClusterError where it does not answer.
    """
    from shipfitter.cluster.failures import ApiError
    from shipfitter.cluster.survey import survey_expected

    try:
        return survey_expected(context=context)
    except ApiError as error:
        raise NoClusterError(f"the cluster does not say what nodes may come: {error}") from error


def cluster_quotas(
    context: str | None, namespace: str, name: str, priority_class: str
) -> tuple[GpuQuota, ...]:
    """What the namespace's quotas leave of the cluster's GPUs.

    Raises NoClusterError where it does not answer.
    """
    from shipfitter.cluster.failures import ApiError
    from shipfitter.cluster.queue import Key
    from shipfitter.cluster.survey import survey_quotas

    try:
        return survey_quotas(Key(namespace, name), priority_class, context=context)
    except ApiError as error:
        raise NoClusterError(f"the cluster does not tell its quotas: {error}") from error


def cluster_has_groups(context: str | None) -> bool:
    """Whether the kubeconfig's cluster can run a replica over several nodes.

    Raises NoClusterError where it does not answer.
    """
    from shipfitter.cluster.failures import ApiError
    from shipfitter.cluster.survey import survey_groups

    try:
        return survey_groups(context=context)
    except ApiError as error:
        raise NoClusterError(f"the cluster does not say whether it has groups: {error}") from error


def imagined_nodes(gpus: list[str]) -> tuple[NodeCapacity, ...]:
    """One free node for each GPU[:COUNT]; an instance type has its own count.

    Raises InvalidSpecError naming every spelling that is not known, with the nearest names.
    """
    problems: list[str] = []
    nodes = []
    for number, text in enumerate(gpus, start=1):
        spelling, _, count = text.partition(":")
        found = resolve_spelling(spelling)
        if found is None:
            problems.append(f"--gpu {spelling}: {unknown_spelling(spelling)}")
        elif count and not (count.isdigit() and 0 < int(count) <= 64):
            problems.append(f"--gpu {text}: the count is a number from 1 to 64, got {count!r}")
        else:
            nodes.append(
                _imagined(f"imagined-{number}", found, int(count or found.gpus_per_node or 1))
            )
    if problems:
        raise InvalidSpecError(tuple(problems))
    return tuple(nodes)


def _imagined(name: str, found: Resolved, count: int) -> NodeCapacity:
    row = found.row
    nominal_bytes = found.usable_bytes if found.mig_profile else row.nvml_total_bytes
    device = Device(
        product=row.product,
        total_bytes=found.usable_bytes,
        nominal_bytes=nominal_bytes,
        compute_capability=row.compute_capability,
        mig_profile=found.mig_profile,
        unified=row.unified,
    )
    return NodeCapacity(
        name=name,
        labels={
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/os": "linux",
            "nvidia.com/gpu.product": row.product,
            "nvidia.com/gpu.count": str(count),
            "nvidia.com/gpu.memory": str(nominal_bytes // MIB),
        },
        devices=(device,) * count,
        allocatable_gpus=count,
        source=CapacitySource.CATALOGUE,
        host_memory_bytes=IMAGINED_HOST_MEMORY_BYTES,
        nvlink=row.nvlink and not found.mig_profile,
    )


def read_expected(path: Path) -> tuple[ExpectedNodes, ...]:
    """The kinds of GPU nodes that autoscalers' objects in a file of nodes would make."""
    readers = {"NodePool": nodepool_nodes, **dict.fromkeys(MACHINE_GROUPS, machine_group_nodes)}
    return tuple(
        expected
        for each in _objects(path)
        if each.get("kind") in readers
        for expected in readers[each["kind"]](each)
    )


def _objects(path: Path) -> list[dict[str, Any]]:
    try:
        documents = list(yaml.safe_load_all(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise InvalidSpecError((f"--nodes {path}: {error.strerror}",)) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InvalidSpecError((f"--nodes {path}: not YAML: {error}",)) from error
    return [item for document in documents for item in _items(document)]


def read_nodes(path: Path) -> tuple[NodeCapacity, ...]:
    """The nodes of a file of Nodes with their GPUNodes, ResourceSlices and DeviceClasses.

    Single objects or Lists; all GPUs count as free. Raises InvalidSpecError when it cannot be read
    or holds no Node.
    """
    objects = _objects(path)
    gpu_nodes = {o["metadata"]["name"]: o for o in objects if o.get("kind") == "GPUNode"}
    nodes = [o for o in objects if o.get("kind") == "Node"]
    if not nodes:
        raise InvalidSpecError(
            (f"--nodes {path}: holds no Node; write it with kubectl get nodes,gpunodes -o yaml",)
        )
    slices = _slices(objects)
    mapped = {
        str((o.get("spec") or {}).get("extendedResourceName") or "")
        for o in objects
        if o.get("kind") == "DeviceClass"
    }
    return tuple(
        capacity
        for node in nodes
        for capacity in node_capacities(
            node,
            gpu_nodes.get(node["metadata"]["name"]),
            {},
            slices=slices.get(node["metadata"]["name"], ()),
            mapped=mapped,
        )
    )


def _slices(objects: list[dict[str, Any]]) -> dict[str, tuple[ResourceSlice, ...]]:
    found: dict[str, list[ResourceSlice]] = {}
    for body in objects:
        if body.get("kind") == "ResourceSlice":
            parsed = parse_slice(body.get("spec") or {})
            found.setdefault(parsed.node, []).append(parsed)
    return {node: current(slices) for node, slices in found.items()}


def _items(document: Any) -> list[dict[str, Any]]:
    if not isinstance(document, dict):
        return []
    items = document.get("items")
    return items if isinstance(items, list) else [document]
