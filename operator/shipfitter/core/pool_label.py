"""The label that tells one kind of node from another, where the cluster's own labels do not."""

import hashlib
import re
from collections.abc import Iterable

from shipfitter.core.capacity import CapacitySource, NodeCapacity
from shipfitter.core.node_classes import NodeClass, node_class

POOL_LABEL = "shipfitter.dev/pool"

# What was read from labels needs none of ours; what nobody saw is not written onto a node.
SEEN_ON_THE_NODE = (CapacitySource.MEASURED, CapacitySource.STALE, CapacitySource.RESOURCE_SLICE)
MOST_CHARACTERS = 63  # of a label's value


def pool_label(offers: Iterable[NodeCapacity]) -> str:
    """The value for a node with these capacities; empty where its GPUs were not seen.

    Built from what does not change by itself: products, GPUs built in, MIG profile, sharing. Bytes
    are no part of it: a driver moves them.
    """
    found = [
        each
        for offer in offers
        if offer.source in SEEN_ON_THE_NODE and (each := node_class(offer)) is not None
    ]
    text = re.sub(r"[^A-Za-z0-9.-]+", "-", "_".join(sorted(map(_kind, found)))).strip("-.")
    if len(text) <= MOST_CHARACTERS:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{text[: MOST_CHARACTERS - 9].rstrip('-.')}-{digest}"


def _kind(found: NodeClass) -> str:
    parts = [*found.products, str(found.gpus_per_node)]
    if found.mig_profile:
        parts.append(found.mig_profile)
    if found.sharing != "none":
        parts += [found.sharing, str(found.replicas_per_gpu)]
    return "-".join(parts)
