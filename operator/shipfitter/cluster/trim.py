"""Raw objects to the little of them we keep; what is not kept can change without waking anybody."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from sys import intern
from typing import Any

from shipfitter.cluster.gpu_requests import gpu_requests
from shipfitter.cluster.kinds import (
    CLAIMS_ANNOTATION,
    DELETION_COST_ANNOTATION,
    OWNER_LABEL,
    SERVES_LABEL,
    TEMPLATE_ANNOTATION,
    VARIANT_LABEL,
)
from shipfitter.status.scheduling import lacking

NODE_FIELDS = ("allocatable", "capacity", "nodeInfo")


def node(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A Node as planning reads it, in the API's own shape; heartbeats and images are left out."""
    metadata, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    kept: dict[str, Any] = {
        "name": metadata["name"],
        "uid": metadata.get("uid", ""),
        "labels": _interned(metadata.get("labels") or {}),
    }
    if "deletionTimestamp" in metadata:
        kept["deletionTimestamp"] = metadata["deletionTimestamp"]
    return {
        "metadata": kept,
        "spec": {
            "unschedulable": bool(spec.get("unschedulable")),
            "taints": [
                {name: taint[name] for name in ("key", "value", "effect") if name in taint}
                for taint in spec.get("taints") or ()
            ],
        },
        "status": {
            **{name: _interned(status.get(name) or {}) for name in NODE_FIELDS},
            "conditions": [
                {"type": each["type"], "status": each["status"]}
                for each in status.get("conditions") or ()
            ],
        },
    }


def gpu_node(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A GPUNode: name, uid, whose it is, and all the agent measured."""
    metadata = raw["metadata"]
    return {
        "metadata": {
            "name": metadata["name"],
            "uid": metadata.get("uid", ""),
            "ownerReferences": [
                {"kind": owner.get("kind"), "name": owner.get("name"), "uid": owner.get("uid")}
                for owner in metadata.get("ownerReferences") or ()
            ],
        },
        "status": raw.get("status") or {},
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnPod:
    """A pod of ours: where it is, what it holds, how it fares, and its last words."""

    namespace: str
    name: str
    owner: str
    variant: str
    phase: str
    ready: bool
    node: str = ""
    gpus: Mapping[str, int] = field(default_factory=dict)  # requested, by resource name
    unschedulable_since: str = ""
    unschedulable: tuple[str, ...] = ()  # what nodes lack, by the scheduler's words
    template_hash: str = ""
    restarts: int = 0
    waiting_reason: str = ""
    termination_message: str = ""
    exit_code: int | None = None
    terminating: bool = False
    address: str = ""
    created: str = ""
    ended_reason: str = ""
    container: str = ""  # the engine's name
    deletion_cost: int = 0
    serves: bool = True  # False: a worker of a group, which answers no requests

    @property
    def ended(self) -> bool:
        """True where it holds nothing any more."""
        return self.phase in ("Succeeded", "Failed")


def own_pod(raw: Mapping[str, Any]) -> OwnPod:
    """A pod that carries our label."""
    metadata, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    labels = metadata.get("labels") or {}
    conditions = {each["type"]: each for each in status.get("conditions") or ()}
    scheduled = conditions.get("PodScheduled") or {}
    waits = scheduled.get("status") == "False" and scheduled.get("reason") == "Unschedulable"
    main = _main_container(spec, status)
    last = _last_end(main)
    return OwnPod(
        namespace=intern(metadata.get("namespace", "")),
        name=metadata["name"],
        owner=intern(labels.get(OWNER_LABEL, "")),
        variant=intern(labels.get(VARIANT_LABEL, "")),
        phase=intern(status.get("phase") or "Pending"),
        ready=(conditions.get("Ready") or {}).get("status") == "True",
        node=intern(spec.get("nodeName") or ""),
        gpus=_gpus(metadata, spec),
        unschedulable_since=(scheduled.get("lastTransitionTime") or "") if waits else "",
        unschedulable=lacking(scheduled.get("message") or "") if waits else (),
        template_hash=(metadata.get("annotations") or {}).get(TEMPLATE_ANNOTATION, ""),
        restarts=int(main.get("restartCount") or 0),
        waiting_reason=((main.get("state") or {}).get("waiting") or {}).get("reason") or "",
        termination_message=last.get("message") or "",
        exit_code=last.get("exitCode"),
        terminating="deletionTimestamp" in metadata,
        address=status.get("podIP") or "",
        created=metadata.get("creationTimestamp") or "",
        ended_reason=last.get("reason") or "",
        container=intern(main.get("name") or ""),
        deletion_cost=_deletion_cost(metadata),
        serves=labels.get(SERVES_LABEL) == "true",
    )


def _gpus(metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> dict[str, int]:
    """Devices a pod of ours takes: by its requests, or by what we wrote of its claims."""
    written = (metadata.get("annotations") or {}).get(CLAIMS_ANNOTATION, "")
    name, _, count = str(written).rpartition("=")
    return {intern(name): int(count)} if name and count.isdecimal() else gpu_requests(spec)


def _deletion_cost(metadata: Mapping[str, Any]) -> int:
    """Of which pod goes first; what is no number counts as none, as for the controller."""
    written = str((metadata.get("annotations") or {}).get(DELETION_COST_ANNOTATION, ""))
    return int(written) if written.isdecimal() else 0


def _main_container(spec: Mapping[str, Any], status: Mapping[str, Any]) -> Mapping[str, Any]:
    """The status of the first container of the spec: the engine is always written first."""
    containers = spec.get("containers") or ()
    name = containers[0]["name"] if containers else ""
    statuses: Iterable[Mapping[str, Any]] = status.get("containerStatuses") or ()
    return next((each for each in statuses if each["name"] == name), {})


def _last_end(container: Mapping[str, Any]) -> Mapping[str, Any]:
    """How the container ended last; the current state before the one before it."""
    for state in (container.get("state"), container.get("lastState")):
        ended: Mapping[str, Any] | None = (state or {}).get("terminated")
        if ended:
            return ended
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnWorkload:
    """A Deployment or LeaderWorkerSet of ours: what it wants and how far it is."""

    namespace: str
    name: str
    uid: str
    owner: str
    variant: str
    replicas: int
    gpus: Mapping[str, int]  # per pod, by resource name
    node_selector: Mapping[str, str]
    node_affinity: tuple[Mapping[str, Any], ...]  # required terms: any of them
    wish: str  # digest of everything somebody could have edited
    progress: tuple[Any, ...] = ()  # counts and conditions, without times
    pods_per_replica: int = 1

    @property
    def pods(self) -> int:
        """Pods it asks for, those of groups counted one by one."""
        return self.replicas * self.pods_per_replica


def own_workload(raw: Mapping[str, Any]) -> OwnWorkload:
    """A Deployment or LeaderWorkerSet that carries our label; a group's pods take equal parts."""
    metadata, spec, status = raw["metadata"], raw["spec"], raw.get("status") or {}
    labels = metadata.get("labels") or {}
    group = spec.get("leaderWorkerTemplate") or {}
    template = group.get("workerTemplate") or spec["template"]
    pod = template.get("spec") or {}
    affinity = (pod.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    counts = ("observedGeneration", "replicas", "updatedReplicas", "readyReplicas")
    return OwnWorkload(
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        owner=labels.get(OWNER_LABEL, ""),
        variant=labels.get(VARIANT_LABEL, ""),
        replicas=int(spec.get("replicas", 1)),
        gpus=_gpus(template.get("metadata") or {}, pod),
        node_selector=pod.get("nodeSelector") or {},
        node_affinity=tuple(required.get("nodeSelectorTerms") or ()),
        wish=wish_digest(raw),
        progress=(
            *(int(status.get(name) or 0) for name in counts),
            *(
                (each["type"], each["status"], each.get("reason", ""))
                for each in status.get("conditions") or ()
            ),
        ),
        pods_per_replica=int(group.get("size") or 1),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnObject:
    """A Service or disruption budget of ours: who it is, and whether somebody changed it."""

    namespace: str
    name: str
    uid: str
    owner: str
    wish: str


def own_object(raw: Mapping[str, Any]) -> OwnObject:
    """An object that carries our label and has no status we read."""
    metadata = raw["metadata"]
    return OwnObject(
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        owner=(metadata.get("labels") or {}).get(OWNER_LABEL, ""),
        wish=wish_digest(raw),
    )


# Deployment controllers count their revisions in an annotation of the object itself.
MOVING_ANNOTATIONS = frozenset({"deployment.kubernetes.io/revision"})


def wish_digest(raw: Mapping[str, Any]) -> str:
    """Changes when anything but status and bookkeeping changes."""
    metadata = raw["metadata"]
    annotations = {
        name: value
        for name, value in (metadata.get("annotations") or {}).items()
        if name not in MOVING_ANNOTATIONS
    }
    wish = [
        metadata.get("uid"),
        metadata.get("labels"),
        annotations,
        [owner.get("uid") for owner in metadata.get("ownerReferences") or ()],
        metadata.get("deletionTimestamp"),
        raw.get("spec"),
        raw.get("data"),
    ]
    text = json.dumps(wish, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2s(text.encode(), digest_size=16).hexdigest()


def _interned(strings: Mapping[str, Any]) -> dict[str, Any]:
    """The same mapping; equal strings of thousands of nodes are kept once."""
    return {
        intern(key): intern(value) if isinstance(value, str) else value
        for key, value in strings.items()
    }
