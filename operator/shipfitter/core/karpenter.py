"""Karpenter NodePools: which GPU nodes they would make, by the requirements they state.

Source: karpenter.sh/v1 NodePool (template labels, requirements, taints), and the well-known labels
of the providers for AWS, EKS Auto Mode and Azure.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from shipfitter.core.capacity import read_taints
from shipfitter.core.expected import MOST_GPUS_PER_NODE, ExpectedNodes
from shipfitter.core.instance_rows import AWS_FAMILIES
from shipfitter.core.quantities import whole
from shipfitter.core.spellings import Resolved, resolve_spelling

NODEPOOL_LABEL = "karpenter.sh/nodepool"
# Labels whose values are instance types, each exact.
TYPE_LABELS = ("node.kubernetes.io/instance-type", "karpenter.azure.com/sku-name")


class GpuLabels(NamedTuple):
    """How one provider labels nodes with GPUs; "" for what it does not."""

    name: str
    number: str
    memory: str = ""  # MiB as sold, of each GPU
    family: str = ""
    size: str = ""


PROVIDERS = (
    *(
        GpuLabels(
            name=f"{provider}/instance-gpu-name",
            number=f"{provider}/instance-gpu-count",
            memory=f"{provider}/instance-gpu-memory",
            family=f"{provider}/instance-family",
            size=f"{provider}/instance-size",
        )
        for provider in ("karpenter.k8s.aws", "eks.amazonaws.com")
    ),
    GpuLabels(name="karpenter.azure.com/sku-gpu-name", number="karpenter.azure.com/sku-gpu-count"),
)

Wanted = Mapping[str, tuple[str, ...]]  # label → values that its requirement allows
Kind = tuple[Resolved, int, dict[str, str]]  # GPU, how many, labels that select such nodes


def nodepool_nodes(nodepool: Mapping[str, Any]) -> tuple[ExpectedNodes, ...]:
    """The kinds of GPU nodes a NodePool names; none where it names none, or is on its way out.

    Instance types are exact; a family is one of its sizes for each number of GPUs. Where there are
    only GPU names and counts, each pair is a kind: a name that stands for several cards counts with
    its memory, or not at all.
    """
    metadata = nodepool.get("metadata") or {}
    template = ((nodepool.get("spec") or {}).get("template")) or {}
    spec = template.get("spec") or {}
    if metadata.get("deletionTimestamp"):
        return ()
    labels = {
        **((template.get("metadata") or {}).get("labels") or {}),
        NODEPOOL_LABEL: str(metadata.get("name", "")),
    }
    wanted = _wanted(spec.get("requirements") or ())
    return tuple(
        ExpectedNodes(
            found=found,
            gpus_per_node=gpus,
            labels=labels | more,
            taints=read_taints(spec.get("taints")),
            origin=f"NodePool {metadata.get('name', '')}",
        )
        for found, gpus, more in _kinds(wanted)
        if 0 < gpus <= MOST_GPUS_PER_NODE
    )


def _wanted(requirements: Any) -> Wanted:
    """Values by label; of several requirements on one label those that all allow."""
    wanted: dict[str, tuple[str, ...]] = {}
    for each in requirements:
        if each.get("operator") != "In":
            continue
        key, values = str(each.get("key")), tuple(map(str, each.get("values") or ()))
        wanted[key] = tuple(value for value in values if value in wanted.get(key, values))
    return wanted


def _kinds(wanted: Wanted) -> Iterator[Kind]:
    for label in TYPE_LABELS:
        if label in wanted:
            yield from _by_type(wanted[label], label)
            return
    for labels in PROVIDERS:
        if labels.name in wanted:
            yield from _by_gpu(wanted, labels)
        elif labels.family in wanted:
            yield from _by_family(wanted, labels)


def _by_type(names: tuple[str, ...], label: str) -> Iterator[Kind]:
    for name in names:
        found = resolve_spelling(name)
        if found and found.gpus_per_node:
            yield found, found.gpus_per_node, {label: name}


def _by_family(wanted: Wanted, labels: GpuLabels) -> Iterator[Kind]:
    """For each number of GPUs that the sizes allowed have; the number is a label too."""
    for family in wanted[labels.family]:
        product, sizes = AWS_FAMILIES.get(family, ("", {}))
        allowed = wanted.get(labels.size, tuple(sizes))
        counts = {sizes[size] for size in allowed if size in sizes}
        found = resolve_spelling(product)
        for count in sorted(counts):
            if found and str(count) in wanted.get(labels.number, (str(count),)):
                yield found, count, {labels.family: family, labels.number: str(count)}


def _by_gpu(wanted: Wanted, labels: GpuLabels) -> Iterator[Kind]:
    for name in wanted[labels.name]:
        for memory in wanted.get(labels.memory, ("",)):
            found = resolve_spelling(name) or resolve_spelling(f"{name}-{whole(memory) // 1024}gb")
            for count in wanted.get(labels.number, ()):
                if found:
                    sized = {labels.memory: memory} if memory else {}
                    yield found, whole(count), {labels.name: name, labels.number: count, **sized}
