"""A pod's status from what its containers do: pure, the rules are the kubelet's.

Source: Kubernetes 1.36, pkg/kubelet: kubelet_pods.go (phase), status/generate.go (conditions).
"""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]


def stamp(seconds: float) -> str:
    """The time as the API writes it.

    >>> stamp(0)
    '1970-01-01T00:00:00Z'
    """
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminated:
    """How one run of a container ended."""

    exit_code: int
    reason: str  # Completed | Error | OOMKilled | StartError | ContainerStatusUnknown
    message: str = ""
    started_seconds: float = 0.0
    finished_seconds: float = 0.0
    container_id: str = ""

    def body(self) -> Object:
        """As `state.terminated`."""
        body: Object = {
            "exitCode": self.exit_code,
            "reason": self.reason,
            "startedAt": stamp(self.started_seconds),
            "finishedAt": stamp(self.finished_seconds),
        }
        if self.message:
            body["message"] = self.message
        if self.container_id:
            body["containerID"] = self.container_id
        return body


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerState:
    """One container as its pod's status shows it; waiting, running or terminated."""

    name: str
    image: str
    waiting_reason: str = "ContainerCreating"
    waiting_message: str = ""
    running_since_seconds: float | None = None
    terminated: Terminated | None = None
    last: Terminated | None = None
    restarts: int = 0
    started: bool = False
    ready: bool = False
    container_id: str = ""

    @property
    def running(self) -> bool:
        return self.running_since_seconds is not None

    @property
    def succeeded(self) -> bool:
        return self.terminated is not None and self.terminated.exit_code == 0

    def body(self) -> Object:
        """As one of `containerStatuses`."""
        body: Object = {
            "name": self.name,
            "image": self.image,
            "imageID": f"process://{self.image}" if self.container_id else "",
            "restartCount": self.restarts,
            "ready": self.ready,
            "started": self.started,
            "state": self._state(),
            "lastState": {"terminated": self.last.body()} if self.last else {},
        }
        if self.container_id:
            body["containerID"] = self.container_id
        return body

    def _state(self) -> Object:
        if self.terminated is not None:
            return {"terminated": self.terminated.body()}
        if self.running_since_seconds is not None:
            return {"running": {"startedAt": stamp(self.running_since_seconds)}}
        waiting = {"reason": self.waiting_reason}
        if self.waiting_message:
            waiting["message"] = self.waiting_message
        return {"waiting": waiting}


def phase(
    init: Sequence[ContainerState],
    containers: Sequence[ContainerState],
    restart_policy: str,
    *,
    ending: bool = False,
) -> str:
    """The pod's phase; one that ends is over when all of it has ended, whatever its policy."""
    if ending and not any(s.running for s in (*init, *containers)):
        return "Succeeded" if all(s.succeeded for s in containers) else "Failed"
    failed_init = [s for s in init if s.terminated is not None and not s.succeeded]
    if failed_init and restart_policy == "Never":
        return "Failed"
    never_ran = [s for s in containers if not s.running and not s.terminated and not s.last]
    if not all(s.succeeded for s in init) or never_ran:
        return "Pending"
    over = [s for s in containers if s.terminated is not None]
    if len(over) < len(containers) or restart_policy == "Always":
        return "Running"
    if all(s.succeeded for s in over):
        return "Succeeded"
    return "Failed" if restart_policy == "Never" else "Running"


def conditions(
    init: Sequence[ContainerState],
    containers: Sequence[ContainerState],
    pod_phase: str,
    previous: Sequence[Mapping[str, Any]],
    now_seconds: float,
) -> list[Object]:
    """Initialized, ContainersReady, Ready and PodScheduled; a kept state keeps its time."""
    waiting_init = [s.name for s in init if not s.succeeded]
    unready = [s.name for s in containers if not s.ready]
    if pod_phase in ("Succeeded", "Failed"):
        word = "PodCompleted" if pod_phase == "Succeeded" else "PodFailed"
        ready = {"status": "False", "reason": word}
    elif unready:
        ready = {
            "status": "False",
            "reason": "ContainersNotReady",
            "message": f"containers with unready status: [{' '.join(unready)}]",
        }
    else:
        ready = {"status": "True"}
    initialized = {"status": "True"}
    if waiting_init:
        initialized = {
            "status": "False",
            "reason": "ContainersNotInitialized",
            "message": f"containers with incomplete status: [{' '.join(waiting_init)}]",
        }
    wanted = {
        "PodScheduled": {"status": "True"},
        "Initialized": initialized,
        "ContainersReady": ready,
        "Ready": ready,
    }
    known = {c["type"]: c for c in previous}
    return [_condition(kind, want, known.get(kind), now_seconds) for kind, want in wanted.items()]


def _condition(
    kind: str, want: Mapping[str, str], known: Mapping[str, Any] | None, now_seconds: float
) -> Object:
    since = stamp(now_seconds)
    if known is not None and known["status"] == want["status"]:
        since = known.get("lastTransitionTime") or since
    # An absent reason must be written as null: a strategic merge would keep the old one.
    blank = {"reason": None, "message": None}
    return {"type": kind, **blank, **want, "lastTransitionTime": since}


def recovered(body: Mapping[str, Any], *, restarts: bool) -> ContainerState:
    """A container that ran before the emulator did: its process is gone, its count goes on."""
    ended = (body.get("state") or {}).get("terminated") or {}
    lost = Terminated(
        exit_code=ended.get("exitCode", 137),
        reason=ended.get("reason", "ContainerStatusUnknown"),
        message=ended.get(
            "message", "The container could not be located when the pod was terminated"
        ),
    )
    count = body.get("restartCount", 0)
    if restarts:
        return ContainerState(name=body["name"], image=body["image"], last=lost, restarts=count + 1)
    return ContainerState(name=body["name"], image=body["image"], terminated=lost, restarts=count)
