"""One look at a whole cluster, for the command line: no watches, no memory."""

import os
from collections.abc import Mapping
from typing import Any

from shipfitter.cluster import trim
from shipfitter.cluster.capacity import CapacityView
from shipfitter.cluster.client import Client
from shipfitter.cluster.connection import load_configuration
from shipfitter.cluster.failures import ApiError
from shipfitter.cluster.free_gpus import ForeignUse
from shipfitter.cluster.kinds import GPU_NODE, NODE
from shipfitter.core.capacity import NodeCapacity


def survey_nodes(
    context: str | None = None, environ: Mapping[str, str] = os.environ
) -> tuple[NodeCapacity, ...]:
    """Every node with GPUs as it is now, with what all pods hold; without agents by its labels.

    Raises ClusterUnreachableError where no cluster is known, ApiError where it does not answer.
    """
    client = Client(lambda: load_configuration(environ, context=context))
    try:
        nodes = {
            raw["metadata"]["name"]: trim.node(raw)
            for page in client.pages(NODE)
            for raw in page.get("items") or ()
        }
        gpu_nodes = _gpu_nodes(client)
        used = ForeignUse(client, own_namespaces=()).used()
    finally:
        client.close()
    view = CapacityView(node_of=nodes.get, gpu_node_of=gpu_nodes.get)
    for name in nodes:
        view.refresh(name)
    return view.nodes(used)


def _gpu_nodes(client: Client) -> dict[str, dict[str, Any]]:
    try:
        return {
            raw["metadata"]["name"]: trim.gpu_node(raw)
            for page in client.pages(GPU_NODE)
            for raw in page.get("items") or ()
        }
    except ApiError as error:
        if error.not_found:  # Shipfitter is not installed there: a plan is possible all the same
            return {}
        raise
