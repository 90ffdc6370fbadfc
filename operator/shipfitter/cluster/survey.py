"""One look at a whole cluster, for the command line: no watches, no memory."""

import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from shipfitter.cluster import dra, trim
from shipfitter.cluster.capacity import CapacityView
from shipfitter.cluster.client import Client
from shipfitter.cluster.connection import load_configuration
from shipfitter.cluster.failures import ApiError
from shipfitter.cluster.free_gpus import ForeignUse
from shipfitter.cluster.kinds import (
    DEVICE_CLASS,
    GPU_NODE,
    LEADER_WORKER_SET,
    NODE,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    Kind,
)
from shipfitter.cluster.store import Change, key_of
from shipfitter.cluster.watch import FORBIDDEN
from shipfitter.core.capacity import NodeCapacity

T = TypeVar("T")


def survey_nodes(
    context: str | None = None, environ: Mapping[str, str] = os.environ
) -> tuple[NodeCapacity, ...]:
    """Every node with GPUs as it is now, with what all pods hold; without agents by its labels.

    Raises ClusterUnreachableError where no cluster is known, ApiError where it does not answer.
    """
    client = Client(lambda: load_configuration(environ, context=context))
    try:
        return survey(client)
    finally:
        client.close()


def survey_groups(context: str | None = None, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether the cluster knows LeaderWorkerSets; everybody may ask what there is."""
    client = Client(lambda: load_configuration(environ, context=context))
    try:
        client.request("GET", f"/apis/{LEADER_WORKER_SET.api_version}")
    except ApiError as error:
        if error.not_found or error.status == FORBIDDEN:
            return False
        raise
    finally:
        client.close()
    return True


def survey(client: Client) -> tuple[NodeCapacity, ...]:
    """The same through a client."""
    nodes = _listed(client, NODE, trim.node)
    # Without these (Shipfitter is not installed, no DRA) there is an answer all the same.
    gpu_nodes = _listed(client, GPU_NODE, trim.gpu_node, optional=True)
    slices = _listed(client, RESOURCE_SLICE, dra.resource_slice, optional=True)
    classes = _listed(client, DEVICE_CLASS, dra.device_class, optional=True)
    claims = _listed(client, RESOURCE_CLAIM, dra.resource_claim, optional=True)
    used = ForeignUse(client, own_namespaces=()).used()
    by_node = dra.SlicesByNode()
    for name, found in slices.items():
        by_node.take(Change(name, None, found))
    view = CapacityView(
        node_of=nodes.get,
        gpu_node_of=gpu_nodes.get,
        slices_of=by_node.of,
        mapped=lambda: frozenset(classes.values()),
    )
    for name in nodes:
        view.refresh(name)
    return view.nodes(used, dra.taken(claims.values()))


def _listed(
    client: Client, kind: Kind, trimmed: Callable[[Mapping[str, Any]], T], *, optional: bool = False
) -> dict[str, T]:
    """All objects of a kind by `namespace/name`; none of a kind that may be absent, or not ours."""
    try:
        return {
            key_of(raw): trimmed(raw)
            for page in client.pages(kind)
            for raw in page.get("items") or ()
        }
    except ApiError as error:
        if optional and (error.not_found or error.status == FORBIDDEN):
            return {}
        raise
