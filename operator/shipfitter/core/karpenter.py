"""Karpenter NodePools: which GPU nodes they would make, by the requirements they state.

Source: karpenter.sh/v1 NodePool (template labels, requirements, taints), and the well-known labels
of the AWS provider.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from shipfitter.core.capacity import Taint
from shipfitter.core.expected import MOST_GPUS_PER_NODE, ExpectedNodes
from shipfitter.core.quantities import whole
from shipfitter.core.spellings import resolve_spelling

INSTANCE_TYPE = "node.kubernetes.io/instance-type"
NODEPOOL_LABEL = "karpenter.sh/nodepool"
GPU_NAME = "karpenter.k8s.aws/instance-gpu-name"
GPU_COUNT = "karpenter.k8s.aws/instance-gpu-count"
GPU_MEMORY = "karpenter.k8s.aws/instance-gpu-memory"  # MiB as sold, of each GPU


def nodepool_nodes(nodepool: Mapping[str, Any]) -> tuple[ExpectedNodes, ...]:
    """The kinds of GPU nodes a NodePool names; none where it names none, or is on its way out.

    Instance types are exact. Where there are only GPU names and counts, each pair is a kind: a name
    that stands for several cards counts with its memory, or not at all.
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
    taints = tuple(
        Taint(
            key=str(taint.get("key", "")),
            value=str(taint.get("value") or ""),
            effect=str(taint.get("effect", "NoSchedule")),
        )
        for taint in spec.get("taints") or ()
    )
    wanted = {
        str(each.get("key")): tuple(map(str, each.get("values") or ()))
        for each in spec.get("requirements") or ()
        if each.get("operator") == "In"
    }
    origin = f"NodePool {metadata.get('name', '')}"
    kinds = _by_type(wanted) if INSTANCE_TYPE in wanted else _by_gpu(wanted)
    return tuple(
        ExpectedNodes(
            found=found,
            gpus_per_node=gpus,
            labels=labels | more,
            taints=taints,
            origin=origin,
        )
        for found, gpus, more in kinds
        if 0 < gpus <= MOST_GPUS_PER_NODE
    )


def _by_type(wanted: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[Any, int, dict[str, str]]]:
    for name in wanted[INSTANCE_TYPE]:
        found = resolve_spelling(name)
        if found and found.gpus_per_node:
            yield found, found.gpus_per_node, {INSTANCE_TYPE: name}


def _by_gpu(wanted: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[Any, int, dict[str, str]]]:
    memories = wanted.get(GPU_MEMORY, ("",))
    for name in wanted.get(GPU_NAME, ()):
        for memory in memories:
            found = resolve_spelling(name) or resolve_spelling(f"{name}-{whole(memory) // 1024}gb")
            for count in wanted.get(GPU_COUNT, ()):
                if found:
                    sized = {GPU_MEMORY: memory} if memory else {}
                    yield found, whole(count), {GPU_NAME: name, GPU_COUNT: count, **sized}
