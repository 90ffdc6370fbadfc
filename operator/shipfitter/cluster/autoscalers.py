"""Objects by which autoscalers say what nodes they would make; a cluster has few of these kinds."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from shipfitter.cluster import kinds
from shipfitter.core.expected import ExpectedNodes
from shipfitter.core.karpenter import nodepool_nodes
from shipfitter.core.machine_groups import machine_group_nodes

Reader = Callable[[Mapping[str, Any]], tuple[ExpectedNodes, ...]]


def _group(kind: kinds.Kind, raw: Mapping[str, Any]) -> tuple[ExpectedNodes, ...]:
    """A machine group; in a list, objects do not say of what kind they are."""
    return machine_group_nodes({**raw, "kind": kind.kind})


OFFERS: Mapping[kinds.Kind, Reader] = {
    kinds.NODE_POOL: nodepool_nodes,
    **{
        kind: partial(_group, kind)
        for kind in (
            kinds.MACHINE_DEPLOYMENT,
            kinds.MACHINE_DEPLOYMENT_BEFORE,
            kinds.OPENSHIFT_MACHINE_SET,
        )
    },
}
