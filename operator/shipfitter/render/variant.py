"""Variants: which kind of workload realises a plan on a pool, and what it is called."""

import hashlib
import json

from shipfitter.api.model_deployment import Allocation
from shipfitter.core.plan import Sizing

_HASH_LENGTH = 8  # with a name of 40 characters, pod names stay within a label's 63


def nodes_per_replica(sizing: Sizing) -> int:
    """Nodes that one replica spans."""
    return sizing.settings.layout.nodes


def gpus_per_pod(sizing: Sizing) -> int:
    """GPUs of one pod: a replica on one node is one pod."""
    return sizing.settings.layout.gpus_per_node


def workload_kind(sizing: Sizing) -> str:
    """Deployment where a replica fits one node, LeaderWorkerSet where it does not."""
    return "Deployment" if nodes_per_replica(sizing) == 1 else "LeaderWorkerSet"


def variant_name(
    name: str, sizing: Sizing, *, allocation: Allocation = Allocation.DEVICE_PLUGIN
) -> str:
    """The name of a plan's workload: what cannot change within one workload is in its hash."""
    layout = sizing.settings.layout
    identity = (
        sizing.pool.name,
        workload_kind(sizing),
        layout.tensor_parallel_size,
        layout.pipeline_parallel_size,
        str(allocation),
    )
    digest = hashlib.sha256(json.dumps(identity).encode()).hexdigest()
    return f"{name}-{digest[:_HASH_LENGTH]}"
