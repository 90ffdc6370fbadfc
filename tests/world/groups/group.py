"""The pods of one group as the LeaderWorkerSet controller makes them.

Source: the labels, annotations and variables that LeaderWorkerSet v1 publishes.
"""

import copy
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]
DOMAIN = "leaderworkerset.sigs.k8s.io"
NAME_LABEL = f"{DOMAIN}/name"
GROUP_LABEL = f"{DOMAIN}/group-index"
WORKER_LABEL = f"{DOMAIN}/worker-index"
KEY_LABEL = f"{DOMAIN}/group-key"
REVISION_LABEL = f"{DOMAIN}/template-revision-hash"
SIZE_ANNOTATION = f"{DOMAIN}/size"
LEADER_ANNOTATION = f"{DOMAIN}/leader-name"


def revision(body: Mapping[str, Any]) -> str:
    """Changes with what pods are made from, and with nothing else."""
    parts = [body["spec"]["leaderWorkerTemplate"], body["spec"].get("networkConfig")]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:10]


def size(body: Mapping[str, Any]) -> int:
    return int(body["spec"]["leaderWorkerTemplate"].get("size", 1))


def pod(body: Mapping[str, Any], group: int, worker: int, owner: Mapping[str, Any]) -> Object:
    """The leader (worker 0) or a worker; `owner` is the set, or the worker's leader."""
    name, namespace = body["metadata"]["name"], body["metadata"]["namespace"]
    templates = body["spec"]["leaderWorkerTemplate"]
    template = templates.get("leaderTemplate") if worker == 0 else None
    template = copy.deepcopy(template or templates["workerTemplate"])
    leader = f"{name}-{group}"
    mine = leader if worker == 0 else f"{leader}-{worker}"
    metadata = template.get("metadata") or {}
    labels = {
        NAME_LABEL: name,
        GROUP_LABEL: str(group),
        WORKER_LABEL: str(worker),
        KEY_LABEL: hashlib.sha256(f"{namespace}/{leader}".encode()).hexdigest()[:20],
        REVISION_LABEL: revision(body),
    }
    annotations = {SIZE_ANNOTATION: str(size(body))}
    if worker:
        annotations[LEADER_ANNOTATION] = leader
    spec = template["spec"]
    spec |= {"hostname": mine, "subdomain": name}
    given = [
        {"name": "LWS_LEADER_ADDRESS", "value": f"{leader}.{name}.{namespace}"},
        {"name": "LWS_GROUP_SIZE", "value": str(size(body))},
        {"name": "LWS_WORKER_INDEX", "value": str(worker)},
    ]
    for container in spec["containers"] + spec.get("initContainers", []):
        container["env"] = given + container.get("env", [])
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": mine,
            "namespace": namespace,
            "labels": {**(metadata.get("labels") or {}), **labels},
            "annotations": {**(metadata.get("annotations") or {}), **annotations},
            "ownerReferences": [
                {
                    "apiVersion": owner["apiVersion"],
                    "kind": owner["kind"],
                    "name": owner["metadata"]["name"],
                    "uid": owner["metadata"]["uid"],
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": spec,
    }


def service(body: Mapping[str, Any]) -> Object:
    """The headless Service by which pods find their leader before it is ready."""
    metadata = body["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "ownerReferences": [
                {
                    "apiVersion": body["apiVersion"],
                    "kind": body["kind"],
                    "name": metadata["name"],
                    "uid": metadata["uid"],
                    "controller": True,
                }
            ],
        },
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {NAME_LABEL: metadata["name"]},
        },
    }


@dataclass(frozen=True)
class Group:
    """The pods there are of one group."""

    index: int
    pods: tuple[Object, ...]

    @property
    def leader(self) -> Object | None:
        return next((each for each in self.pods if worker_index(each) == 0), None)

    @property
    def revision(self) -> str:
        return str(self.pods[0]["metadata"]["labels"].get(REVISION_LABEL))

    @property
    def is_going(self) -> bool:
        return any("deletionTimestamp" in each["metadata"] for each in self.pods)

    @property
    def is_broken(self) -> bool:
        """Whether a container of it was started again, or a pod has failed for good."""
        return any(
            each.get("status", {}).get("phase") == "Failed" or _restarts(each) for each in self.pods
        )

    def is_ready(self, wanted: int) -> bool:
        """Whether all its pods are there and ready."""
        return len(self.pods) == wanted and not self.is_going and all(map(ready, self.pods))


def groups(pods: Iterable[Object]) -> dict[int, Group]:
    """Pods of one set by their group."""
    found: dict[int, list[Object]] = {}
    for each in pods:
        found.setdefault(int(each["metadata"]["labels"][GROUP_LABEL]), []).append(each)
    return {index: Group(index, tuple(mine)) for index, mine in sorted(found.items())}


def worker_index(body: Mapping[str, Any]) -> int:
    return int(body["metadata"]["labels"][WORKER_LABEL])


def ready(body: Mapping[str, Any]) -> bool:
    conditions = (body.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _restarts(body: Mapping[str, Any]) -> int:
    statuses = (body.get("status") or {}).get("containerStatuses") or ()
    return sum(int(each.get("restartCount") or 0) for each in statuses)
