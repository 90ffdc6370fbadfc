"""One look at a whole cluster, for the command line: no watches, no memory."""

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from shipfitter.cluster import dra, trim
from shipfitter.cluster.autoscalers import OFFERS
from shipfitter.cluster.capacity import CapacityView
from shipfitter.cluster.client import Client
from shipfitter.cluster.connection import load_configuration
from shipfitter.cluster.failures import ApiError
from shipfitter.cluster.free_gpus import ForeignUse
from shipfitter.cluster.kinds import (
    DEPLOYMENT,
    DEVICE_CLASS,
    GPU_NODE,
    LEADER_WORKER_SET,
    NODE,
    QUOTA,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    Kind,
)
from shipfitter.cluster.queue import Key
from shipfitter.cluster.quotas import gpu_quotas, namespace_quota
from shipfitter.cluster.store import Change, key_of
from shipfitter.cluster.watch import FORBIDDEN
from shipfitter.core.capacity import NodeCapacity
from shipfitter.core.declared import declared_capacity
from shipfitter.core.expected import ExpectedNodes
from shipfitter.core.quota import GpuQuota

T = TypeVar("T")
# The chart's own names for the operator and for what it is told.
OPERATOR_LABELS = "app.kubernetes.io/name=shipfitter,app.kubernetes.io/component=operator"
DECLARED_VARIABLE = "SHIPFITTER_DECLARED_CAPACITY"


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


def survey_expected(
    context: str | None = None, environ: Mapping[str, str] = os.environ
) -> tuple[ExpectedNodes, ...]:
    """The kinds of GPU nodes that are not there yet: declared in the chart, or autoscalers' own."""
    client = Client(lambda: load_configuration(environ, context=context))
    try:
        return expected(client)
    finally:
        client.close()


def expected(client: Client) -> tuple[ExpectedNodes, ...]:
    """The same through a client."""
    return (*_declared(client), *_offered(client))


def _offered(client: Client) -> Iterator[ExpectedNodes]:
    for kind, read in OFFERS.items():
        found = _listed(client, kind, read, optional=True)
        yield from (each for name in sorted(found) for each in found[name])


def _declared(client: Client) -> tuple[ExpectedNodes, ...]:
    """What the running operator was told; nothing where we may not look, or it is not there.

    A mistake in it is the operator's to tell: it does not start with one.
    """
    found = _listed(client, DEPLOYMENT, _declaration, optional=True, labels=OPERATOR_LABELS)
    return declared_capacity(next(filter(None, found.values()), ""), [])


def _declaration(deployment: Mapping[str, Any]) -> str:
    pod = deployment["spec"]["template"]["spec"]
    values = [
        str(each.get("value") or "")
        for container in pod["containers"]
        for each in container.get("env") or ()
        if each["name"] == DECLARED_VARIABLE
    ]
    return values[0] if values else ""


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


def survey_quotas(
    key: Key,
    priority_class: str = "",
    context: str | None = None,
    environ: Mapping[str, str] = os.environ,
) -> tuple[GpuQuota, ...]:
    """What the namespace's quotas leave of GPUs; nothing where there is no right to read them."""
    client = Client(lambda: load_configuration(environ, context=context))
    try:
        found = _listed(client, QUOTA, namespace_quota, namespace=key.namespace, optional=True)
    finally:
        client.close()
    return gpu_quotas(found.values(), key, priority_class, {})


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
        declared=_declared(client),
        node_of=nodes.get,
        gpu_node_of=gpu_nodes.get,
        slices_of=by_node.of,
        mapped=lambda: frozenset(classes.values()),
    )
    for name in nodes:
        view.refresh(name)
    return view.nodes(used, dra.taken(claims.values()))


def _listed(
    client: Client,
    kind: Kind,
    trimmed: Callable[[Mapping[str, Any]], T],
    *,
    namespace: str = "",
    optional: bool = False,
    labels: str = "",
) -> dict[str, T]:
    """All objects of a kind by `namespace/name`; none of a kind that may be absent, or not ours."""
    try:
        return {
            key_of(raw): trimmed(raw)
            for page in client.pages(
                kind, namespace, query={"labelSelector": labels} if labels else {}
            )
            for raw in page.get("items") or ()
        }
    except ApiError as error:
        if optional and (error.not_found or error.status == FORBIDDEN):
            return {}
        raise
