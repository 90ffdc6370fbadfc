"""A variant whose replica spans nodes: a group of pods that starts, fails and rolls as one.

The engine's own multi-node launcher is used: the leader serves, workers join it without HTTP.
Source: vLLM 0.12 and newer, vllm/entrypoints/cli/serve.py run_headless.
"""

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from shipfitter.api.model_deployment import ModelDeployment
from shipfitter.core.plan import Sizing, VariantPlan
from shipfitter.render.args import drain_seconds
from shipfitter.render.deployment import annotated_plan
from shipfitter.render.labels import (
    INPUTS_ANNOTATION,
    PLAN_ANNOTATION,
    SERVES_LABEL,
    VARIANT_LABEL,
    owned_metadata,
    queue_labels,
)
from shipfitter.render.leaving import LEADER_ADDRESS, MASTER_PORT, after_its_leader
from shipfitter.render.pod import engine_container, pod_template
from shipfitter.render.startup import PRE_STOP_SECONDS
from shipfitter.render.variant import nodes_per_replica, variant_name

# The address under which a node's engine is found by the others; it guesses where none is given.
# Source: vLLM vllm/utils/network_utils.py get_ip.
HOST_ADDRESS = "VLLM_HOST_IP"
# Source: vLLM 0.32 vllm/entrypoints/cli/serve.py run_headless.
SERVERS_FLAG = "--api-server-count"
API_VERSION = "leaderworkerset.x-k8s.io/v1"


def leader_worker_set(
    resource: ModelDeployment,
    variant: VariantPlan,
    record: Mapping[str, Any],
    *,
    image: str,
    replicas: int | None = None,
    hub_endpoint: str = "",
) -> dict[str, Any]:
    """The variant's LeaderWorkerSet; `replicas` only to create it, as for a Deployment.

    LeaderCreated: workers must not wait for a Ready leader, which is Ready only once they joined.
    """
    sizing = variant.sizing
    name = variant_name(resource.metadata.name, sizing, allocation=resource.spec.gpus.allocation)
    metadata = owned_metadata(resource, name)
    metadata["labels"] |= {VARIANT_LABEL: name, **queue_labels(resource)}
    metadata["annotations"] = {
        INPUTS_ANNOTATION: str(record.get("inputsHash", "")),
        PLAN_ANNOTATION: annotated_plan(record, resource, image=image),
    }
    template = pod_template(resource, sizing, name, image=image, hub_endpoint=hub_endpoint)
    spec: dict[str, Any] = {
        "startupPolicy": "LeaderCreated",
        "leaderWorkerTemplate": {
            "size": nodes_per_replica(sizing),
            "restartPolicy": "RecreateGroupOnPodRestart",
            "leaderTemplate": _leader(template, sizing),
            "workerTemplate": _worker(
                template, sizing, stay_seconds=PRE_STOP_SECONDS + drain_seconds(resource)
            ),
        },
    }
    if replicas is not None:
        spec["replicas"] = replicas
    return {
        "apiVersion": API_VERSION,
        "kind": "LeaderWorkerSet",
        "metadata": metadata,
        "spec": spec,
    }


def group_scale_manifest(
    resource: ModelDeployment,
    name: str,
    *,
    replicas: int,
    max_surge: int,
    max_unavailable: int,
) -> dict[str, Any]:
    """Only the number of groups and how they are replaced."""
    return {
        "apiVersion": API_VERSION,
        "kind": "LeaderWorkerSet",
        "metadata": {"name": name, "namespace": resource.metadata.namespace},
        "spec": {
            "replicas": replicas,
            "rolloutStrategy": {
                "type": "RollingUpdate",
                "rollingUpdateConfiguration": {
                    "maxSurge": max_surge,
                    "maxUnavailable": max_unavailable,
                },
            },
        },
    }


def _leader(template: Mapping[str, Any], sizing: Sizing) -> dict[str, Any]:
    return _joined(template, sizing, "--node-rank=0")


def _worker(template: Mapping[str, Any], sizing: Sizing, *, stay_seconds: int) -> dict[str, Any]:
    """No HTTP, so no probes, no port and no part in the Service; the group restarts as one."""
    worker = _joined(template, sizing, "--node-rank=$(LWS_WORKER_INDEX)", "--headless")
    del worker["metadata"]["labels"][SERVES_LABEL]
    engine = engine_container(worker)
    for field in ("ports", "startupProbe", "readinessProbe", "livenessProbe"):
        engine.pop(field, None)
    engine["args"] = list(_without_front(engine["args"]))
    engine["lifecycle"] = after_its_leader(stay_seconds)
    return worker


def _without_front(args: Sequence[str]) -> Iterator[str]:
    """A node without HTTP refuses to be told how many servers it should have."""
    words = iter(args)
    for word in words:
        if word == SERVERS_FLAG:
            next(words, None)
        elif not word.startswith(f"{SERVERS_FLAG}="):
            yield word


def _joined(template: Mapping[str, Any], sizing: Sizing, *rank: str) -> dict[str, Any]:
    pod: dict[str, Any] = copy.deepcopy(dict(template))
    engine = engine_container(pod)
    if not any(each["name"] == HOST_ADDRESS for each in engine["env"]):
        engine["env"].append(
            {"name": HOST_ADDRESS, "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
        )
    engine["args"] += [
        f"--nnodes={nodes_per_replica(sizing)}",
        f"--master-addr=$({LEADER_ADDRESS})",
        f"--master-port={MASTER_PORT}",
        *rank,
    ]
    return pod
