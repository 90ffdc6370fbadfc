"""Node selectors: the shortest conjunction of well-known labels that selects exactly some nodes."""

from collections.abc import Collection, Iterable, Mapping
from itertools import combinations

# Always part of a selector where the nodes carry them: an image runs on one of each.
PLATFORM_KEYS = ("kubernetes.io/arch", "kubernetes.io/os")

# What may tell pools apart, most readable first; never hostnames.
# Source: the node labels of gpu-feature-discovery and of the providers that `published` reads.
POOL_KEYS = (
    "nvidia.com/gpu.product",
    "nvidia.com/gpu.count",
    "nvidia.com/gpu.memory",
    "nvidia.com/gpu.sharing-strategy",
    "nvidia.com/gpu.replicas",
    "node.kubernetes.io/instance-type",
    "cloud.google.com/gke-accelerator",
    "cloud.google.com/gke-accelerator-count",
    "cloud.google.com/gke-gpu-partition-size",
    "cloud.google.com/gke-gpu-sharing-strategy",
    "karpenter.k8s.aws/instance-gpu-name",
    "karpenter.k8s.aws/instance-gpu-count",
    "karpenter.k8s.aws/instance-gpu-memory",
    "eks.amazonaws.com/instance-gpu-name",
    "k8s.amazonaws.com/accelerator",
    "gpu.nvidia.com/model",
    "aliyun.accelerator/nvidia_name",
    "karpenter.azure.com/sku-gpu-name",
    "doks.digitalocean.com/gpu-model",
    "machine.cluster.vke.volcengine.com/gpu-name",
    "skypilot.co/accelerator",
    "accelerator",
    "nvidia.com/mig.config",
    "shipfitter.dev/pool",
)

# A node's values for the keys above, "" for a label it does not carry: thousands of nodes are few.
Signature = tuple[str, ...]
_KEYS = (*PLATFORM_KEYS, *POOL_KEYS)


def signature(labels: Mapping[str, str]) -> Signature:
    """What of a node's labels may go into a selector."""
    return tuple(labels.get(key, "") for key in _KEYS)


def shortest_selector(
    members: Collection[Signature],
    rivals: Collection[Signature],
    bystanders: Collection[Signature] = (),
) -> tuple[dict[str, str], bool]:
    """Labels that select every member and no rival, and whether that was possible.

    Bystanders are left out too where labels can do it; a pod that asks for the members' resource
    could not run there anyway. One label beyond the platform's is taken even when nothing needs to
    be told apart today: the selector outlives the arrival of other nodes.
    """
    common = [
        (key, values[0])
        for key, *values in zip(_KEYS, *members, strict=True)
        if values[0] and len(set(values)) == 1
    ]
    platform = {key: value for key, value in common if key in PLATFORM_KEYS}
    told_apart = {key: value for key, value in common if key not in PLATFORM_KEYS}
    for others in ((*rivals, *bystanders), rivals):
        chosen = _shortest(told_apart, [other for other in others if selects(platform, other)])
        if chosen is not None:
            return platform | {key: told_apart[key] for key in chosen}, True
    return platform | told_apart, False


def selects(selector: Mapping[str, str], node: Signature) -> bool:
    """Whether a node with this signature is selected."""
    return all(node[_KEYS.index(key)] == value for key, value in selector.items())


def _shortest(told_apart: Mapping[str, str], others: Iterable[Signature]) -> tuple[str, ...] | None:
    """The fewest keys, first in the list among equals, whose values no other node shares whole."""
    others = frozenset(others)
    keys = tuple(told_apart)
    excluded = {
        key: frozenset(other for other in others if other[_KEYS.index(key)] != told_apart[key])
        for key in keys
    }
    if frozenset().union(*excluded.values()) != others:
        return None
    return next(
        chosen
        for size in range(min(1, len(keys)), len(keys) + 1)
        for chosen in combinations(keys, size)
        if frozenset().union(*(excluded[key] for key in chosen)) == others
    )
